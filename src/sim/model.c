/* The time model. Every part is monotone in its counters; they combine as follows:
 *
 *     time = launch + max(dram ceiling, |latency, dram|, L2, issue, pipes, dispatch)
 *
 * dram      distinct sectors at the measured ceiling of their read/write mix: never undercut;
 * |x, y|    (x^1.5 + y^1.5)^(2/3): with few bytes in flight memory's queues are partly empty and
 *           neither latency nor bandwidth is reached alone. y is the datasheet's bandwidth;
 * latency   Little's law by waves: a warp waits for memory `warp_waits` times and for its own
 *           results ISSUE_LATENCY clocks an instruction; a block's place is free again only when
 *           its last warp is done, which costs in proportion to its size;
 * L2        all sectors at L2's rate, or at what the SMs in use can take;
 * issue     warp instructions at the SM's issue rate;
 * pipes     the busiest of the fp32, integer, special and fp64 lanes;
 * dispatch  one block an SM every DISPATCH_CLOCKS.
 *
 * The last wave counts half of what it leaves idle. The exponent and the three constants were
 * fitted by hand to element-wise kernels on an H200 (2^28 floats, cold L2, blocks of 32 to 1,024,
 * one element a thread, float4, and grid-stride loops with 1 to 64 warps an SM), with a round trip
 * of 435 ns and 1.98 GHz: on those same launches it is within 8%. At 2^20 floats it is up to 35%
 * (about 2 us) short of what events measure. Other GPUs and other kinds of kernels are
 * extrapolation. */
#include "sim/model.h"

#include <math.h>

#define ISSUE_LATENCY   4.0   /* clocks between dependent instructions of a warp */
#define DISPATCH_CLOCKS 157.0 /* from one block to the next on an SM, at H200's 1.98 GHz */
#define DISPATCH_GHZ    1.98e9
#define BLOCK_TAIL_S    0.28e-9 /* a thread of the block: waiting for the block's last warp */
#define OVERLAP         1.5

struct work { /* of the whole launch, sampled counters scaled */
    double warps, instrs, waits, sectors, read_bytes, write_bytes;
    double fp32, fp64, integer, special;
};

static struct work work_of(const struct sim_counters *c) {
    double s = c->ctas ? (double)c->ctas_total / (double)c->ctas : 0;
    return (struct work){
        .warps = s * (double)c->warps,
        .instrs = s * (double)c->warp_instrs,
        .waits = s * (double)c->warp_waits,
        .sectors = s * (double)(c->load_sectors + c->store_sectors),
        .read_bytes = s * 32.0 * (double)c->touched_load_sectors,
        .write_bytes = s * 32.0 * (double)c->touched_store_sectors,
        .fp32 = s * (double)c->warp_fp32,
        .fp64 = s * (double)c->warp_fp64,
        .integer = s * (double)c->warp_int,
        .special = s * (double)c->warp_special,
    };
}

static double most(const double *v, int n) {
    double m = 0;
    for (int i = 0; i < n; i++)
        m = v[i] > m ? v[i] : m;
    return m;
}

static double overlapped(double x, double y) {
    return pow(pow(x, OVERLAP) + pow(y, OVERLAP), 1 / OVERLAP);
}

static double pipe_time(const struct gpu *g, const struct work *w, double lane_clocks) {
    const double t[] = {
        w->fp32 / g->fp32_lanes_clk,
        w->integer / g->int_lanes_clk,
        w->special / g->sfu_lanes_clk,
        w->fp64 / g->fp64_lanes_clk,
    };
    return 32 * most(t, 4) / lane_clocks;
}

/* Waves as time sees them: the last one's idle places count half. */
static double effective_waves(double waves) {
    return waves <= 1 ? 1 : (waves + ceil(waves)) / 2;
}

void sim_model(const struct gpu *g, const struct sim_counters *c, uint32_t threads_block,
               int registers_thread, size_t shared_block, struct sim_estimate *out) {
    struct work w = work_of(c);
    *out = (struct sim_estimate){.launch_s = g->launch_s, .bound = "launch"};
    out->occupancy = gpu_occupancy(g, (int)threads_block, registers_thread, shared_block);
    out->time_s = out->launch_s;
    if (!c->ctas || out->occupancy.blocks_sm < 1)
        return;
    double ctas = (double)c->ctas_total, places = (double)g->sms * out->occupancy.blocks_sm;
    double sms = ctas < g->sms ? ctas : g->sms, clocks = sms * g->clock_hz;
    out->waves = ctas / places;
    double warp_s =
        w.waits / w.warps * g->dram_latency_s + w.instrs / w.warps * ISSUE_LATENCY / g->clock_hz;
    out->dram_s = gpu_roofline(g, w.read_bytes, w.write_bytes, 0, 0).memory_s;
    out->latency_s = effective_waves(out->waves) * (warp_s + BLOCK_TAIL_S * threads_block);
    double l2[] = {w.sectors * 32 / g->l2_bytes_s, w.sectors / (g->lsu_sectors_clk * clocks)};
    out->l2_s = most(l2, 2);
    out->issue_s = w.instrs / (g->issue_warps_clk * clocks);
    out->pipe_s = pipe_time(g, &w, clocks);
    out->dispatch_s = ctas * DISPATCH_CLOCKS / DISPATCH_GHZ / g->sms;
    double both = overlapped(out->latency_s, (w.read_bytes + w.write_bytes) / g->dram_bytes_s);
    const double parts[] = {out->dram_s,  both,        out->l2_s,
                            out->issue_s, out->pipe_s, out->dispatch_s};
    static const char *const names[] = {"dram", "latency", "l2", "issue", "pipes", "dispatch"};
    double time = most(parts, 6);
    for (int i = 5; i >= 0; i--)
        if (parts[i] >= time)
            out->bound = names[i];
    /* Mostly bandwidth, slowed by latency, is called by the larger of the two. */
    if (both >= time && out->latency_s < out->dram_s)
        out->bound = names[0];
    out->time_s += time;
}
