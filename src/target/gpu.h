/* The GPUs we know: limits, rates, latencies and measured ceilings, and the arithmetic of the
 * roofline. Facts only; nothing here touches a device. The table is gpu.def; further GPUs come from
 * files of the same facts by name (gpu_load, docs/SIM.md). */
#ifndef TARGET_GPU_H
#define TARGET_GPU_H

#include "base/arena.h"
#include "base/err.h"

struct gpu {
    const char *name;  /* "h200", as in --device sim:h200 */
    const char *title; /* "NVIDIA H200" */
    const char *arch;  /* for NVRTC: "sm_90a" */
    int sms;
    double clock_hz;      /* sustained boost */
    double dram_bytes_s;  /* datasheet: the speed-of-light floor */
    double copy_bytes_s;  /* ceiling measured, read + write counted */
    double read_bytes_s;  /* … reading only */
    double write_bytes_s; /* … writing only */
    double l2_bytes_s;    /* L2 to SMs, all together */
    size_t l2_bytes;
    double fp32_flops, fp32_tensor_flops; /* plain; class fp32 through tensor cores */
    double tf32_flops, bf16_flops;
    double launch_s; /* one empty kernel, back to back */
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
    bool calibrated; /* on hardware; otherwise from public facts, and labelled so */
};

const struct gpu *gpu_find(str name); /* NULL: unknown */
size_t gpu_count(void);
const struct gpu *gpu_at(size_t i);

/* A GPU from a file of lines `fact = value`, the members of struct gpu by name; `like = NAME` takes
 * what is not stated from a row of the table, without it everything has to be stated. `file` is
 * for messages: file:line:col, the line and what to do. The result lives in the arena. */
#define GPU_FILE_BYTES 65536u
bool gpu_parse(str file, str text, struct arena *a, const struct gpu **out, struct err *err);
/* Such a file, with every fact: gpu_parse gives the same GPU back. */
void gpu_text(const struct gpu *g, struct buf *out);
bool gpu_load(const char *path, struct arena *a, const struct gpu **out, struct err *err);
/* By name: a row of the table, a path (it has a '/' or ends in ".gpu"), or NAME.gpu in the user's
 * folder gpu_folder(). *path: the file it came from, or NULL. */
bool gpu_named(str name, struct arena *a, const struct gpu **out, const char **path,
               struct err *err);
/* $XDG_DATA_HOME/cutepilot/gpus or ~/.local/share/cutepilot/gpus; empty with neither. */
str gpu_folder(struct arena *a);

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

#endif
