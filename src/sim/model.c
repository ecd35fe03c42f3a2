/* The time model. Every part is monotone in its counters; they combine as follows:
 *
 *     time = launch + |memory, SMs, L2, dispatch|4, never less than the dram ceiling
 *     memory = |latency, dram|1.5     SMs = |latency, the busiest of issue, pipes, tensor, lsu|1.5
 *
 * |x, y|p    (x^p + y^p)^(1/p): what keeps two things busy takes a little longer than the slower
 *           of them; with little in flight queues are partly empty and neither latency nor a rate
 *           is reached alone, hence the small exponent there. It is 1, a sum, where only one block
 *           fits an SM: nothing else goes on there while the block waits;
 * dram      distinct sectors, and what a block reads again after so much else that L2 has lost it,
 *           at the datasheet's bandwidth; the ceiling is the measured one of their mix. A sector
 *           that is stored in parts is written more than once, and blocks that all start at once
 *           read and write in step, which memory serves a little worse;
 * latency   a block's own time, as its warps' clocks say (timing.h), wave after wave; memory is as
 *           far as the share of its loads that L2 has not got; a block's place is free again only
 *           when its last warp is done, which costs in proportion to its size, and a cluster's only
 *           when all its blocks are done and the next ones can start together;
 * L2        sectors that L1 has not got, and spilled registers, at L2's rate, or at what the SMs in
 *           use can take;
 * issue …   what the blocks of the busiest SM hold of it: issue slots, the fp32, integer, special
 *           and fp64 pipes, tensor cores, and the unit that serves shared and global memory;
 * dispatch  one block an SM every DISPATCH_CLOCKS.
 *
 * The last wave counts half of what it leaves idle. The exponent of memory and the constants were
 * fitted by hand to element-wise kernels on an H200 (2^28 floats, cold L2, blocks of 32 to 1,024,
 * one element a thread, float4, and grid-stride loops with 1 to 64 warps an SM), with a round trip
 * of 435 ns and 1.98 GHz: on those same launches it is within 8%. At 2^20 floats it is up to 35%
 * (about 2 us) short of what events measure. What clusters, a single block an SM, parts of
 * sectors, blocks in step, spills and L2 cost was fitted to the kernels of bench/model/fitted.txt.
 * The rest is built from published latencies and rates and was fitted to nothing. */
#include "sim/model.h"

#include <math.h>

#define ISSUE_LATENCY   4.0   /* clocks between dependent instructions of a warp */
#define DISPATCH_CLOCKS 157.0 /* from one block to the next on an SM, at H200's 1.98 GHz */
#define DISPATCH_GHZ    1.98e9
#define BLOCK_TAIL_S    0.32e-9 /* a thread of the block: waiting for the block's last warp */
#define FEW_IN_FLIGHT   1.5
#define ONE_BLOCK       1.0    /* the same where an SM has no other block to go on with */
#define CLUSTER_S       1.5e-6 /* until a cluster's place is taken by the next one */
#define CLUSTER_WAIT    0.2    /* of memory's time, each time a cluster doubles */
#define START_TOGETHER  1.06   /* memory's time, where all blocks start at once and go on in step */
#define PARTLY_WRITTEN  0.7 /* of the sectors that a request stores a part of: written once more */
#define L2_USABLE       0.7 /* of its size, before what was read is lost again */
#define QUARTERS        4.0 /* of an SM, each with its pipes */
#define SECTOR          32.0

struct work { /* of a block, in clocks of an SM, and of the whole launch, in bytes */
    double far_clocks, near_clocks;
    double issue, pipe, tensor, lsu, port;
    double read_bytes, write_bytes; /* to and from DRAM */
    double l2_loads, l2_bytes;
};

static double most(const double *v, int n) {
    double m = 0;
    for (int i = 0; i < n; i++)
        m = v[i] > m ? v[i] : m;
    return m;
}

static double joined(double x, double y, double p) {
    double m = x > y ? x : y;
    return m > 0 ? m * pow(pow(x / m, p) + pow(y / m, p), 1 / p) : 0;
}

/* Blocks that were timed know most of it. */
static void timed_work(const struct gpu *g, const struct sim_counters *c, struct work *w) {
    double n = (double)c->timed_ctas;
    const double pipes[] = {(double)c->timed_fp32, (double)c->timed_int, (double)c->timed_special,
                            (double)c->timed_fp64};
    w->far_clocks = (double)c->timed_clocks / n;
    w->near_clocks = (double)c->timed_clocks_near / n;
    w->issue = (double)c->timed_slots / n / g->issue_warps_clk;
    w->pipe = most(pipes, 4) / n / QUARTERS;
    w->tensor = (double)c->timed_tensor / n / QUARTERS;
    w->lsu = (double)c->timed_lsu / n;
}

/* Without any: round trips to memory, and every instruction waiting for the one before it. */
static void untimed_work(const struct gpu *g, const struct sim_counters *c, struct work *w) {
    double ctas = (double)c->ctas, warps = (double)c->warps;
    const double pipes[] = {
        (double)c->warp_fp32 / g->fp32_lanes_clk, (double)c->warp_int / g->int_lanes_clk,
        (double)c->warp_special / g->sfu_lanes_clk, (double)c->warp_fp64 / g->fp64_lanes_clk};
    double own = (double)c->warp_instrs / warps * ISSUE_LATENCY, waits = (double)c->warp_waits;
    w->far_clocks = own + waits / warps * g->dram_latency_s * g->clock_hz;
    w->near_clocks = own + waits / warps * g->l2_latency_clk;
    w->issue = (double)c->warp_instrs / ctas / g->issue_warps_clk;
    w->pipe = 32 * most(pipes, 4) / ctas;
    w->tensor = (double)c->tensor_flops / ctas / (g->bf16_flops / g->sms / g->clock_hz + 1);
    w->lsu = (double)c->shared_wavefronts / ctas;
}

/* What a block reads again comes from L2 while all that the blocks beside it read in between fits
 * there. Much of that they read together: of what the blocks ask for, each by itself, `distinct`
 * of the whole launch is the share that needs a place. */
static double read_again(const struct gpu *g, const struct sim_counters *c, double blocks,
                         double distinct) {
    double n = (double)c->timed_ctas;
    double own = (double)c->timed_unique_sectors / n, all = (double)c->timed_l2_sectors / n;
    if (!(all > own))
        return 0;
    double between = (double)c->timed_apart_sectors / n / (all - own) * SECTOR;
    double asked = own * SECTOR * (double)c->ctas_total;
    double resident = between * blocks * (distinct < asked ? distinct / asked : 1);
    double kept = L2_USABLE * (double)g->l2_bytes;
    return resident > kept ? (all - own) * SECTOR * (1 - kept / resident) : 0;
}

/* Bytes of all blocks. What a thread spills is written through to L2; L1 has it when it is read. */
static void traffic(const struct gpu *g, const struct sim_counters *c, const struct sim_block *b,
                    double places, struct work *w) {
    double ctas = (double)c->ctas_total, scale = ctas / (double)c->ctas;
    double loads = scale * (double)c->load_sectors * SECTOR;
    double stores = scale * (double)c->store_sectors * SECTOR;
    double missed =
        c->timed_load_sectors ? (double)c->timed_l2_sectors / (double)c->timed_load_sectors : 1;
    double l2_loads = loads * (missed < 1 ? missed : 1);
    double distinct = (double)c->footprint_load_sectors * SECTOR;
    double blocks = ctas < places ? ctas : places;
    double spilled = b->spills > 0 ? ctas * (double)b->threads * (double)b->spills : 0;
    w->l2_loads = l2_loads;
    w->l2_bytes = l2_loads + stores + spilled;
    w->port = w->l2_bytes / ctas / SECTOR / g->lsu_sectors_clk;
    w->read_bytes = distinct + (c->timed_ctas ? ctas * read_again(g, c, blocks, distinct) : 0);
    double written = (double)c->footprint_store_sectors * SECTOR;
    double rest = scale * (double)c->store_rest_bytes;
    w->write_bytes = written + PARTLY_WRITTEN * (rest < written ? rest : written);
}

/* Of the loads that reach L2, those that go on to DRAM. */
static double far_share(const struct work *w) {
    return w->l2_loads > w->read_bytes ? w->read_bytes / w->l2_loads : 1;
}

/* Blocks of a cluster: 1 without one. */
static double cluster_of(const struct sim_counters *c) {
    return c->gangs ? (double)c->ctas / (double)c->gangs : 1;
}

/* Waves as time sees them: the last one's idle places count half. */
static double effective_waves(double waves) {
    return waves <= 1 ? 1 : (waves + ceil(waves)) / 2;
}

static void name_bound(struct sim_estimate *e) {
    const struct {
        const char *name;
        double s;
    } parts[] = {{"dram", e->dram_s},      {"latency", e->latency_s},  {"l2", e->l2_s},
                 {"issue", e->issue_s},    {"pipes", e->pipe_s},       {"tensor", e->tensor_s},
                 {"load/store", e->lsu_s}, {"dispatch", e->dispatch_s}};
    size_t best = 0;
    for (size_t i = 1; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].s > parts[best].s)
            best = i;
    e->bound = parts[best].s > 0 ? parts[best].name : "launch";
}

/* All parts, and how they combine. */
static void combine(const struct gpu *g, const struct work *w, double slower,
                    struct sim_estimate *e) {
    const double sm[] = {e->issue_s, e->pipe_s, e->tensor_s, e->lsu_s};
    double bytes = (w->read_bytes + w->write_bytes) * slower;
    double few = e->occupancy.blocks_sm > 1 ? FEW_IN_FLIGHT : ONE_BLOCK;
    double memory = joined(e->latency_s, bytes / g->dram_bytes_s, few);
    double sms = joined(e->latency_s, most(sm, 4), few);
    double busy = joined(joined(memory, e->dispatch_s, 4), joined(most(sm, 4), e->l2_s, 4), 4);
    const double parts[] = {e->dram_s, sms, busy};
    e->time_s = e->launch_s + most(parts, 3);
}

void sim_model(const struct gpu *g, const struct sim_counters *c, struct sim_block b,
               struct sim_estimate *out) {
    struct work w = {0};
    *out = (struct sim_estimate){.launch_s = g->launch_s, .bound = "launch"};
    out->occupancy = gpu_occupancy(g, (int)b.threads, b.registers, b.shared);
    out->time_s = out->launch_s;
    if (!c->ctas || out->occupancy.blocks_sm < 1)
        return;
    double ctas = (double)c->ctas_total, places = (double)g->sms * out->occupancy.blocks_sm;
    double sms = ctas < g->sms ? ctas : g->sms, busiest = ceil(ctas / g->sms) / g->clock_hz;
    double cluster = cluster_of(c);
    if (c->timed_ctas)
        timed_work(g, c, &w);
    else
        untimed_work(g, c, &w);
    traffic(g, c, &b, places, &w);
    double clocks = w.near_clocks + far_share(&w) * (w.far_clocks - w.near_clocks);
    double block_s = clocks / g->clock_hz + BLOCK_TAIL_S * b.threads + (cluster > 1) * CLUSTER_S;
    out->waves = ctas / places;
    out->latency_s = effective_waves(out->waves) * block_s;
    double together = out->waves <= 1 ? START_TOGETHER : 1;
    out->dram_s = together * gpu_roofline(g, w.read_bytes, w.write_bytes, 0, 0).memory_s;
    const double l2[] = {w.l2_bytes / g->l2_bytes_s, w.port * ctas / sms / g->clock_hz};
    out->l2_s = most(l2, 2);
    out->issue_s = busiest * w.issue;
    out->pipe_s = busiest * w.pipe;
    out->tensor_s = busiest * w.tensor;
    out->lsu_s = busiest * w.lsu;
    out->dispatch_s = ctas * DISPATCH_CLOCKS / DISPATCH_GHZ / g->sms;
    combine(g, &w, together * (1 + CLUSTER_WAIT * log2(cluster)), out);
    name_bound(out);
}

struct sim_clocks sim_clocks_of(const struct gpu *g, uint32_t threads_block, size_t shared_block) {
    struct occupancy o = gpu_occupancy(g, (int)threads_block, 0, shared_block);
    int blocks = o.blocks_sm > 0 ? o.blocks_sm : 1;
    size_t shared = (size_t)blocks * shared_block, quarter = 32 * (size_t)QUARTERS;
    double clocks = g->clock_hz * g->sms * QUARTERS, warp = (double)quarter;
    return (struct sim_clocks){
        .alu = g->alu_latency_clk,
        .special = g->sfu_latency_clk,
        .fp64 = g->fp64_latency_clk,
        .mma = g->mma_latency_clk,
        .shared = g->shared_latency_clk,
        .l1 = g->l1_latency_clk,
        .l2 = g->l2_latency_clk,
        .dram = g->dram_latency_s * g->clock_hz,
        .fp32_hold = warp / g->fp32_lanes_clk,
        .int_hold = warp / g->int_lanes_clk,
        .special_hold = warp / g->sfu_lanes_clk,
        .fp64_hold = warp / g->fp64_lanes_clk,
        .mma_flops = g->mma_share * g->bf16_flops / clocks,
        .wgmma_flops = g->bf16_flops / clocks,
        .mma_f64_flops = (g->fp64_tensor_flops > 0 ? g->fp64_tensor_flops
                                                   : 2 * g->fp64_lanes_clk * g->sms * g->clock_hz) /
                         clocks,
        .l1_bytes = (g->l1_bytes > shared ? g->l1_bytes - shared : 0) / (size_t)blocks,
    };
}
