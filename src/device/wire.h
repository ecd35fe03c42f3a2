/* What coordinator, worker, device and judge say to each other. All of it is frames (base/frame.h):
 * JSON for what is said, a blob for bulk, descriptors for shared memory between device and judge.
 * Within a process a message is a struct of wire.def, which also says what each field means.
 *
 * - coordinator ⇄ worker: pipes, possibly through ssh or srun; no descriptors, and end of file ends
 *   it.
 * - worker ⇄ device, judge: AF_UNIX sockets on descriptor 3; memory travels as descriptors.
 *
 * A job is one candidate, and perhaps rivals that are timed beside it: its modules (PTX for the
 * simulator, cubins for CUDA), and batches. A batch is one shape with one or more cases, a case is
 * a kind of data from a seed. The worker walks through the batches with the judge (inputs, poison,
 * comparison) and the device (runs), stops at the first verdict, and reports. Expected values and
 * verification seeds never reach the device.
 *
 * Memory has numbers: the judge makes a buffer once and sends its descriptor once to each device
 * process; cases name buffers. */
#ifndef DEVICE_WIRE_H
#define DEVICE_WIRE_H

#include "base/fields.h"
#include "base/frame.h"
#include "kernel/candidate.h"
#include "kernel/verdict.h"
#include "sim/sim.h"
#include "spec/data.h"

#define WIRE_VERSION  5
#define WIRE_NOISE    65536 /* bytes of login banner skipped before a worker's first frame */
#define WIRE_ALIVE_MS 5000  /* between a busy worker's signs of life */
#define WIRE_DEAD_MS  60000 /* of silence on a job: the worker is given up */
#define ROLE_FD       3     /* a role's socket */

#define WIRE_MAX_MODULES 16
#define WIRE_MAX_CASES   256

enum wire {
    WIRE_HELLO = 1, /* role → parent, first: {role, protocol, build, pid, sandbox, device}; of a
                       worker also {node, facts}: its machine, and its GPU's facts */
    /* coordinator → worker → device and judge, before the first job; no answer: wire_task; blob:
     * the oracle's cubin, the harness's cubin (none for sim) */
    WIRE_TASK = 9,
    /* coordinator → worker: job; blob: the modules one after the other. A worker takes one while it
     * is at another */
    WIRE_JOB = 10,
    WIRE_RESULT = 11, /* worker → coordinator: result */
    WIRE_FAILED = 12, /* worker → coordinator: {job, why}: the worker's own trouble, no verdict */
    WIRE_ALIVE = 13,  /* worker → coordinator: {}: now and then while it works on a job */
    WIRE_PREPARE = 20,  /* worker → judge: wire_prepare; inputs and poison are made */
    WIRE_CASE = 21,     /* judge → worker: wire_cases */
    WIRE_COMPARE = 22,  /* worker → judge: {} about the last batch */
    WIRE_JUDGED = 23,   /* judge → worker: wire_judged */
    WIRE_BUFFERS = 24,  /* judge → worker → device, before the CASE that names them; no answer:
                           wire_buffers; one descriptor a buffer */
    WIRE_LOAD = 30,     /* worker → device: wire_load; blob: the modules */
    WIRE_LOADED = 31,   /* device → worker: wire_answer, as are all of its answers */
    WIRE_RUN = 32,      /* worker → device: wire_run */
    WIRE_RAN = 33,      /* device → worker */
    WIRE_MEASURE = 34,  /* worker → device: job_measure: counters without judging */
    WIRE_MEASURED = 35, /* device → worker */
    WIRE_CEILINGS = 36, /* coordinator → worker → device: {}: what this GPU can do at most */
    WIRE_CEILED = 37,   /* device → worker → coordinator: {copy_bytes_s, …} or {why} */
    WIRE_DUMP = 38,     /* worker → judge: {}: the last batch's inputs and outputs as they are */
    WIRE_DUMPED = 39,   /* judge → worker → coordinator: {batch, job}; blob: all tensors */
    WIRE_ERROR = 40, /* judge or device → worker: {why}: cannot do that (memory, bad message) */
    /* worker → device: job_sample: some blocks of a shape, drawn by the key, under the checkers, on
     * data of that kind and the seed */
    WIRE_SAMPLE = 41,
    WIRE_SAMPLED = 42, /* device → worker; blob: contents of the parts */
    WIRE_PARTS = 43,   /* worker → judge: wire_parts; blob as in SAMPLED; answered by JUDGED */
};

#define FIELDS_AS_STRUCTS
#include "base/fields_as.h"
#include "device/wire.def"
extern const struct fields bound_plan_fields, sim_counters_fields, sim_line_fields;
extern const struct field_names verdict_names, data_names;

/* As fields_from_json; what is wrong is a bad message (ERR_ENV). */
bool wire_read(const struct fields *of, const json *head, struct arena *a, void *to,
               struct err *err);
bool wire_write(int fd, enum wire type, const struct fields *of, const void *message, str blob,
                struct err *err);

/* Of a plan that was read, whoever runs it need not check anything: every reference lies within its
 * list and every number within the plan's limits. Of tensors (are they the task's, does a memset
 * stay within one?) the caller knows more and checks it. */
bool plan_check(const struct bound_plan *p, struct err *err);

/* Settable dimensions of an instance, in the arena; and whether they are this instance's. */
struct binding *set_of(const struct inst *in, struct arena *a, size_t *n);
bool set_is(const struct binding *set, size_t n, const struct inst *in);

#endif
