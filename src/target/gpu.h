/* The GPUs we know: features, limits, rates, latencies and measured ceilings, and the arithmetic of
 * the roofline. Facts only; nothing here touches a device. The table is gpu.def; further GPUs come
 * from files of the same facts by name (gpu_load, docs/SIM.md).
 *
 * Whoever needs an instruction asks for the feature (gpu->has.wgmma), never for a number of the
 * architecture: newer architectures drop features too. What an architecture has is in arch.def. */
#ifndef TARGET_GPU_H
#define TARGET_GPU_H

#include "base/arena.h"
#include "base/err.h"

struct gpu_features {
    bool cp_async;    /* asynchronous copies of 4 to 16 bytes a thread into shared memory */
    bool mma;         /* mma.sync of f16, bf16, tf32, int8 and fp64 */
    bool mma_fp8;     /* mma.sync of 8-bit floats */
    bool tma;         /* bulk and tensor copies (cp.async.bulk) and tensor maps */
    bool wgmma;       /* matrix products of a warpgroup, from shared memory */
    bool tcgen05;     /* matrix products into tensor memory, which the expert does not write */
    int cluster_most; /* blocks of a cluster without opting in to more; 1: there are no clusters */
    int sum_bits; /* of a 16-bit product's sum that a tensor core keeps below its largest term */
};

/* An architecture: what the driver does not say of a GPU, and what PTX for it computes. */
struct arch {
    int capability;   /* compute capability times ten: 90 */
    const char *name; /* for NVRTC, with all features: "sm_90a" */
    struct gpu_features has;
    double fp32_lanes_clk, tf32_flop_clk, bf16_flop_clk; /* of an SM */
    int sum_terms;      /* 16-bit products that a tensor core adds at once; half as many of TF32 */
    int fp8_sum_bits;   /* as sum_bits, of 8-bit floats */
    bool fp8_as_halves; /* mma.sync of 8-bit floats is compiled to products of halves */
};
/* The row of that capability, or else the highest of the same major version below it. NULL: none.
 */
const struct arch *arch_of(int capability);
/* What code for "sm_90a" may use. wgmma and tcgen05 need the name with its suffix: "sm_90" has
 * neither. False: an architecture that we do not know. */
bool arch_features(str name, struct gpu_features *out);

struct gpu {
    const char *name;  /* "h200", as in --device sim:h200 */
    const char *title; /* "NVIDIA H200" */
    const char *arch;  /* for NVRTC: "sm_90a" */
    struct gpu_features has;
    int sms;
    double clock_hz;      /* sustained boost */
    double dram_bytes_s;  /* datasheet: the speed-of-light floor */
    double copy_bytes_s;  /* ceiling measured, read + write counted */
    double read_bytes_s;  /* … reading only */
    double write_bytes_s; /* … writing only */
    double l2_bytes_s;    /* L2 to SMs, all together */
    size_t l2_bytes;
    double fp32_flops, fp32_tensor_flops; /* plain; class fp32 through tensor cores */
    double tf32_flops, bf16_flops;        /* f16 has the rate of bf16, summed in fp32 both */
    double fp8_flops, int8_flops;         /* 0: none, or not known */
    double launch_s;                      /* one empty kernel, back to back */
    double dram_latency_s;
    int max_threads_sm, max_blocks_sm, max_warps_sm, max_threads_block;
    int registers_sm;
    size_t shared_sm, shared_block;
    double issue_warps_clk; /* warp instructions an SM issues a clock */
    double fp32_lanes_clk, int_lanes_clk, sfu_lanes_clk, fp64_lanes_clk; /* lanes an SM a clock */
    double lsu_sectors_clk;   /* 32-byte sectors an SM moves to or from L2 a clock */
    size_t l1_bytes;          /* of an SM, shared memory included */
    double mma_share;         /* of the tensor cores' ceilings that mma.sync reaches; wgmma: 1 */
    double fp64_tensor_flops; /* 0: fp64 has no tensor cores worth the name */
    /* Clocks from an instruction to one that uses its result. */
    double alu_latency_clk, sfu_latency_clk, fp64_latency_clk, mma_latency_clk;
    double shared_latency_clk, l1_latency_clk, l2_latency_clk;
    bool calibrated;      /* on hardware; otherwise from public facts, and labelled so */
    const char *measured; /* names of the facts that were measured on one, with spaces between */
};

/* Where a value comes from: "measured" on that GPU, "public" (datasheets, whitepapers, CUDA's
 * tables of compute capabilities), "estimate" (from published microbenchmarks, or from another
 * GPU); "" for names and the like. */
const char *gpu_source(const struct gpu *g, str fact);

const struct gpu *gpu_find(str name); /* NULL: unknown */
size_t gpu_count(void);
const struct gpu *gpu_at(size_t i);

/* A GPU from a file of lines `fact = value`, the members of struct gpu by name; `like = NAME` takes
 * what is not stated from a row of the table, without it everything has to be stated but features:
 * those are the architecture's, unless they are stated. `file` is for messages: file:line:col, the
 * line and what to do. The result lives in the arena. */
#define GPU_FILE_BYTES 65536u
bool gpu_parse(str file, str text, struct arena *a, const struct gpu **out, struct err *err);
/* Such a file, with every fact and where it comes from: gpu_parse gives the same GPU back. */
void gpu_text(const struct gpu *g, struct buf *out);
/* By name: a row of the table, a path (it has a '/' or ends in ".gpu"), or NAME.gpu in the user's
 * folder gpu_folder(). *path: the file it came from, or NULL. */
bool gpu_named(str name, struct arena *a, const struct gpu **out, const char **path,
               struct err *err);

/* Compute capability times ten: of "sm_90a" it is 90; 0: the name of the architecture has none. */
int gpu_capability(const struct gpu *g);

/* How many blocks of a kernel fit an SM, and what stops the next one. */
struct occupancy {
    int blocks_sm;
    int warps_sm;
    const char *limiter; /* "threads", "registers", "shared memory", "blocks" */
};
struct occupancy gpu_occupancy(const struct gpu *g, int threads_block, int registers_thread,
                               size_t shared_block);

/* The limit of a piece of work: compulsory bytes at the measured read/write mix, or flops at the
 * given rate, whichever takes longer. */
struct roofline {
    double memory_s, compute_s, limit_s;
    bool memory_bound;
    double intensity; /* flops a byte */
};
struct roofline gpu_roofline(const struct gpu *g, double read_bytes, double write_bytes,
                             double flops, double flops_s);

/* What launches, which no limit counts, have to do with a small share of the limit. */
enum launch_share {
    LAUNCHES_HARDLY_COUNT, /* the limit is well above them, or nearly reached */
    LAUNCHES_EXPLAIN,      /* limit and launches are nearly all of the time */
    LAUNCHES_ARE_LESS,     /* the limit is as short as they are; the time is far longer than both */
};
enum launch_share gpu_launch_share(const struct gpu *g, double limit_s, double time_s,
                                   size_t launches);

/* Whose rates the limits on a GPU are made of, as a noun; one of them may be 15% from another.
 * here: on the very GPU that timed the kernel, with ceilings that were measured there. */
const char *gpu_limit_source(const struct gpu *g, bool here);

#endif
