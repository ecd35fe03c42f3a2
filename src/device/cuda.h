/* The CUDA driver, opened at run time: no header and no library of NVIDIA's is needed to build, and
 * a host needs nothing but the driver. Only device and judge processes open it, each for a context
 * of its own, after they entered their sandbox.
 *
 * struct cuda is the table of entries (`c->memory_info(&free, &total)`; cuda_api.def lists them)
 * with one context, current in the thread that opened it, and one stream on which everything is
 * done. It belongs to that thread; there is one per process and it ends with the process, so there
 * is no close: after an error of a kernel a context cannot be repaired, only left.
 *
 * Calls return the driver's code, 0 for success. `cuda_try` turns one into an err:
 *
 *     if (!cuda_try(c, c->stream_sync(c->stream), err, "synchronise"))
 *         return false;
 *
 * and cuda_verdict says what a code means for the candidate that brought it about. */
#ifndef DEVICE_CUDA_H
#define DEVICE_CUDA_H

#include "base/err.h"
#include "base/fields.h"
#include "device/cuda_types.h"
#include "kernel/verdict.h"

struct cuda_facts {
    char name[128];
    char uuid[48]; /* GPU-8-4-4-4-12 hex digits, as nvidia-smi prints it */
    int ordinal, count;
    int driver;             /* CUDA version the driver serves: 13000 is 13.0 */
    int cc_major, cc_minor; /* compute capability */
    int sms, clock_khz, memory_clock_khz, memory_bus_bits;
    int max_threads_sm, max_blocks_sm, max_threads_block, registers_sm;
    int fp32_to_fp64; /* ratio of their rates */
    size_t memory_bytes, l2_bytes, persisting_l2_bytes;
    size_t memory_free; /* of memory_bytes when it was probed: others may use the GPU too */
    size_t shared_sm, shared_block, shared_reserved; /* reserved: by the system, in each block */
    enum cu_compute_mode compute_mode;
    bool run_time_limit; /* a display watches: long kernels are killed */
    bool vmm, vmm_fd, cooperative, cluster, tensor_map, multicast;
};

struct cuda {
#define CUDA_API(member, name, params) int(*member) params;
#include "device/cuda_api.def"
#undef CUDA_API
    int device;
    cu_context context;
    cu_stream stream;
    struct cuda_facts facts;
};

/* Library, entries, cuInit and facts; no context. What a probe needs. */
bool cuda_load(struct cuda *c, int ordinal, struct err *err);
/* The same, with a context and its stream. */
bool cuda_open(struct cuda *c, int ordinal, struct err *err);
size_t cuda_free_bytes(const struct cuda *c); /* of the GPU's memory; 0: the driver does not say */

/* err: "what: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered". Returns
 * false. */
bool cuda_fail(const struct cuda *c, struct err *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* code == 0, or cuda_fail. */
bool cuda_try(const struct cuda *c, int code, struct err *err, const char *what);

/* Of a candidate whose load, launch or synchronisation gave this code. VERDICT_ACCEPTED where the
 * code is 0 or speaks of the machine, not of the candidate. */
enum verdict cuda_verdict(int code);
/* Nothing works in this context any more: the process has to be replaced. */
bool cuda_sticky(int code);

/* Loads a cubin that lies anywhere in memory. */
int cuda_module_load(const struct cuda *c, str cubin, cu_module *out);

/* A launch on the context's stream; grid and block of 1 where they are not given. */
struct cuda_launch {
    cu_function function;
    unsigned grid[3], block[3], cluster[3]; /* 0: 1 */
    bool cooperative;
    size_t shared;
    void **params;
};
int cuda_launch(const struct cuda *c, const struct cuda_launch *l);
/* For kernels of our own: `CUDA_PARAMS(&address, &count)`. */
#define CUDA_PARAMS(...) ((void *[]){__VA_ARGS__})

extern const struct fields cuda_facts_fields;

#endif
