/* What coordinator, worker, device and judge say to each other. All of it is frames (base/frame.h):
 * JSON for what is said, a blob for bulk, descriptors for shared memory between device and judge.
 *
 *   coordinator ⇄ worker    pipes, possibly through ssh or srun: no descriptors, end of file ends
 * it worker ⇄ device, judge  AF_UNIX sockets on descriptor 3; memory travels as descriptors
 *
 * A job is one candidate: its PTX, and the shapes and data it is to be tried on. The worker walks
 * through them with the judge (inputs, poison, comparison) and the device (runs), stops at the
 * first verdict, and reports. Expected values and verification seeds never reach the device. */
#ifndef DEVICE_WIRE_H
#define DEVICE_WIRE_H

#include "base/json.h"

#define WIRE_VERSION  1
#define WIRE_NOISE    65536 /* bytes of login banner skipped before a worker's first frame */
#define WIRE_ALIVE_MS 5000  /* between a busy worker's signs of life */
#define WIRE_DEAD_MS  60000 /* of silence on a job: the worker is given up */
#define ROLE_FD       3     /* a role's socket */

/* Public: counts are the same in every run. The counted trial is judged all the same. */
#define COUNTER_SEED "0"

enum wire {
    WIRE_HELLO = 1,   /* role → parent, first: {role, protocol, build, pid, sandbox, device} */
    WIRE_JOB = 10,    /* coordinator → worker: struct job; blob: PTX */
    WIRE_RESULT = 11, /* worker → coordinator: {job, verdict, why, runs: […], counters: […]} */
    WIRE_FAILED = 12, /* worker → coordinator: {job, why}: the worker's own trouble, no verdict */
    WIRE_ALIVE = 13,  /* worker → coordinator: {}: now and then while it works on a job */
    WIRE_PREPARE = 20, /* worker → judge: {task, file, set, data, seed}; inputs and poison made */
    WIRE_CASE = 21,    /* judge → worker: {tensors: [{offset, bytes, writable}]}; fd: memory */
    WIRE_COMPARE = 22, /* worker → judge: {} about the last case */
    WIRE_JUDGED = 23,  /* judge → worker: {verdict, why, worst, rms, mismatches} */
    WIRE_LOAD = 30,    /* worker → device: {task, file}; blob: PTX */
    WIRE_LOADED = 31,  /* device → worker: {verdict, why} */
    WIRE_RUN = 32,     /* worker → device: {set, launches, tensors, counted}; fd: the case */
    WIRE_RAN = 33,     /* device → worker: {verdict, why, counters where asked for} */
    WIRE_MEASURE = 34, /* worker → device: {set, launches, sample_ctas}: of shapes too large to
                          judge, counters of a few blocks */
    WIRE_MEASURED = 35, /* device → worker: {verdict, why, counters: one object a launch} */
    WIRE_ERROR = 40, /* judge or device → worker: {why}: cannot do that (memory, bad message) */
};

#endif
