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

#endif
