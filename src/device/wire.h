/* What coordinator, worker, device and judge say to each other. All of it is frames (base/frame.h):
 * JSON for what is said, a blob for bulk, descriptors for shared memory between device and judge.
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

#include "base/json.h"

#define WIRE_VERSION  3
#define WIRE_NOISE    65536 /* bytes of login banner skipped before a worker's first frame */
#define WIRE_ALIVE_MS 5000  /* between a busy worker's signs of life */
#define WIRE_DEAD_MS  60000 /* of silence on a job: the worker is given up */
#define ROLE_FD       3     /* a role's socket */

enum wire {
    WIRE_HELLO = 1, /* role → parent, first: {role, protocol, build, pid, sandbox, device} */
    /* coordinator → worker → device and judge, before the first job; no answer: {task, file,
     * once: a single candidate comes, oracle, harness: bytes}; blob: the oracle's cubin, the
     * harness's cubin (none for sim) */
    WIRE_TASK = 9,
    /* coordinator → worker: {job, limit_ms, modules: [bytes], shapes: [{label, set, align: [a
     * tensor], plans: [one a module]}], batches: [{shape, cases: [{data, seed}], counted, checked,
     * order, timed, extra: only while something is not covered, patience_ms: after which the device
     * gives it up}], time: {samples, budget_ms}, fresh: every batch has fresh modules, not timed
     * ones alone, measure, samples: messages of those names, covers: what became of choices is
     * recorded, cover_ms: for extra batches}; blob: the modules one after the other. A worker takes
     * one while it is at another */
    WIRE_JOB = 10,
    /* worker → coordinator: {job, verdict, why, shape, data, runs: […], counters: […], lines: […],
     * findings: […] of the checkers where they ended it, times: [one
     * a module: {samples_s, host_s}], rivals: [{module, verdict, why}] that failed, clocks,
     * waited_ms: for the job before it, verify_ms, time_ms} */
    WIRE_RESULT = 11,
    WIRE_FAILED = 12, /* worker → coordinator: {job, why}: the worker's own trouble, no verdict */
    WIRE_ALIVE = 13,  /* worker → coordinator: {}: now and then while it works on a job */
    /* worker → judge: {set, cases: [{data, seed}], align: [a tensor], workspaces: [bytes], device:
     * number of the device process}; inputs and poison are made */
    WIRE_PREPARE = 20,
    /* judge → worker: {cases: [{tensors: [0 | {buffer, offset, bytes, writable}]}], workspaces:
     * [{buffer, offset, bytes}]}, or {verdict, why} where the candidate asks for too much */
    WIRE_CASE = 21,
    WIRE_COMPARE = 22, /* worker → judge: {} about the last batch */
    /* judge → worker: {verdict, why, at: case, worst: […], rms: […], mismatches} */
    WIRE_JUDGED = 23,
    /* judge → worker → device, before the CASE that names them; no answer: {reset, buffers: [{id,
     * bytes}], drop: [id]}; one descriptor a buffer */
    WIRE_BUFFERS = 24,
    WIRE_LOAD = 30,   /* worker → device: {modules: [bytes]}; blob */
    WIRE_LOADED = 31, /* device → worker: {verdict, why, at: the module it is about} */
    /* worker → device: {cases, workspaces (as in CASE), plans: [one a module], runs: [[case,
     * module]], timed, fresh: from modules that nothing ran from (unless false), counted, checked:
     * watched for races and the like, checked_drawn: … of programs with several orders, order} */
    WIRE_RUN = 32,
    /* device → worker: {verdict, why, at: run, counters where asked for, findings where there are
     * some, coverage where it is recorded, late: given up for want of patience, times_s, host_s,
     * clocks where timed, leaving: its context is gone and so is it} */
    WIRE_RAN = 33,
    WIRE_MEASURE = 34,  /* worker → device: {set, plan, sample_ctas, lines}: counters without
                           judging, of a few blocks or (0) of all, by line of the source too */
    WIRE_MEASURED = 35, /* device → worker: {verdict, why, counters: one object a launch, lines:
                           one list a launch} */
    WIRE_CEILINGS = 36, /* coordinator → worker → device: {}: what this GPU can do at most */
    WIRE_CEILED = 37,   /* device → worker → coordinator: {copy_bytes_s, …} or {why} */
    WIRE_DUMP = 38,     /* worker → judge: {}: the last batch's inputs and outputs as they are */
    WIRE_DUMPED = 39, /* judge → worker: {tensors: [[bytes a tensor] a case]}; blob: all of them */
    /* worker → device: {set, plan, seed, key, sample_ctas, parts, budget, producer_budget,
     * patience_ms, survey: blocks that are run once more to see what they store, covers, data,
     * values: not under all checkers}: some blocks of a shape, drawn by the key, under the
     * checkers, on data of that kind and the seed (no other data are of it). parts 0: of a shape
     * that is run whole as well, so that nothing that they store is asked for */
    WIRE_SAMPLE = 41,
    /* device → worker: {verdict, why, findings, parts: [{tensor, lo, n}] of what they stored,
     * unjudged: [why a launch could not be judged], blocks, blocks_total, coverage}; blob: contents
     * of the parts */
    WIRE_SAMPLED = 42,
    WIRE_PARTS =
        43, /* worker → judge: {set, data, seed, parts, most: cost of one}; blob as in SAMPLED;
               answered by JUDGED with judged: elements, skipped: parts that cost more */
    WIRE_ERROR = 40, /* judge or device → worker: {why}: cannot do that (memory, bad message) */
};

#endif
