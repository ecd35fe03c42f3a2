/* The GPUs we know: limits, rates and measured ceilings, and the arithmetic of the roofline. Facts
 * only; nothing here touches a device. The table is gpu.def. */
#ifndef TARGET_GPU_H
#define TARGET_GPU_H

#include "base/str.h"

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
    double lsu_sectors_clk; /* 32-byte sectors an SM moves to or from L2 a clock */
    bool calibrated;        /* on hardware; otherwise from public facts, and labelled so */
};

const struct gpu *gpu_find(str name); /* NULL: unknown */
size_t gpu_count(void);
const struct gpu *gpu_at(size_t i);

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
