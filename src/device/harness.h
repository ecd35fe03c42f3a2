/* Our own kernels in the device process: assets/device/harness.cu, compiled by the coordinator and
 * loaded here. They clean up between launches and measure what the GPU can do.
 *
 * All calls queue work on the context's stream and return the driver's code; an error of a
 * candidate's kernel that nobody waited for shows up here, so callers synchronise first. The memory
 * of the harness lies in the candidate's context: nothing that a verdict rests on is kept in it. */
#ifndef DEVICE_HARNESS_H
#define DEVICE_HARNESS_H

#include "device/cuda.h"

struct harness {
    cu_module module;
    cu_function scrub, scrub_local, hold, fill64, noise, empty;
    cu_function read_all, write_all, copy_all, fma_fp32, mma_tf32, mma_bf16;
    cu_address words;   /* arrivals of scrub and, behind them, the sums of hold */
    cu_address flushed; /* memory that is written to empty the L2 */
    size_t flush_bytes;
    uint32_t arrivals;
    size_t local_bytes; /* that scrub_local fills of each thread's local memory */
    uint32_t pattern;   /* changes with every use */
};

/* Compiled as {arch of the GPU, fmad on, no CuTe}. */
#define HARNESS_ASSET "device/harness.cu"

bool harness_load(const struct cuda *c, str cubin, struct harness *out, struct err *err);

/* From now on scrubbing covers this much local memory of each thread and at least the stack that
 * every kernel has. The driver takes as much for all threads that the GPU can hold: where it has
 * not so much, CU_OUT_OF_MEMORY; above HARNESS_MOST_LOCAL, CU_INVALID_VALUE. Then nothing changes.
 */
#define HARNESS_MOST_LOCAL ((size_t)512 << 10)
int harness_cover_local(const struct cuda *c, struct harness *h, size_t bytes);
/* Overwrites what a launch may have left in the SMs: registers, shared and local memory. */
int harness_scrub(const struct cuda *c, struct harness *h);
int harness_flush(const struct cuda *c, struct harness *h);
/* The stream does nothing else for this long. */
int harness_hold(const struct cuda *c, const struct harness *h, uint32_t ns);
int harness_fill64(const struct cuda *c, const struct harness *h, cu_address to, uint64_t value,
                   uint64_t count);
/* Fills with what changes from call to call. `bytes` of any size, `to` a multiple of 4. */
int harness_poison(const struct cuda *c, struct harness *h, cu_address to, size_t bytes);
/* The SMs' clock while the stream was held since the last call, in MHz; 0: not held. */
int harness_clock_mhz(const struct cuda *c, const struct harness *h, double *mhz);

/* The time of one run on a GPU. Nothing of an earlier run is left to gain from, and the host is
 * ahead of the device when the clock starts:
 *
 *     persisting L2 lines reset | L2 flushed | stream held | start | the plan's steps | stop
 *
 * `start` and `stop` are events on the device's own clock. The host's clock watches the same two
 * instants: it polls the first event and waits for the second, so the two times agree to within the
 * latency of looking. A candidate cannot touch either clock; that they agree is checked all the
 * same (eval/record.c), by their medians, since the host may be put to sleep in any one run. */

struct cuda_timer {
    cu_event start, stop;
};

bool cuda_timer_init(const struct cuda *c, struct cuda_timer *t, struct err *err);
/* Up to and with `start`; `steps` are about to be queued. */
int cuda_timer_start(const struct cuda *c, struct harness *h, const struct cuda_timer *t,
                     size_t steps);
/* Queues `stop`, waits for it. */
int cuda_timer_stop(const struct cuda *c, const struct cuda_timer *t, double *device_s,
                    double *host_s);

#endif
