/* The time model ranks: against times measured on an H200, and by what must never help. */
#include "sim/model.h"
#include "tap.h"

#include "harness.h"

static const struct sim_block usual = {.threads = 256, .registers = 32};

static struct gpu h200(void) {
    return *gpu_find(S("h200"));
}

/* 2^28 floats of which only what the samples touch exists: the buffers are one address range. */
static void untouched(void *ctx, size_t offset, size_t n, void *dst) {
    (void)ctx, (void)offset, (void)n, (void)dst;
}

static double estimate(const char *kernel, uint32_t grid, uint32_t block, int n, float *x, float *y,
                       struct sim_estimate *out) {
    struct harness h;
    struct gpu g = h200();
    size_t bytes = (size_t)4 << 22;
    if (!harness_load(&h, "pointwise.ptx", kernel)) {
        harness_free(&h);
        return NAN;
    }
    struct sim_buffer bx = {
        .name = S("x"), .host = x, .size = bytes, .read_only = true, .touch = untouched};
    struct params_xyn p = {sim_machine_add(h.machine, &bx),
                           harness_buffer(&h, "y", y, bytes, false), n, 0};
    struct sim_clocks clocks = sim_clocks_of(&g, block, 0);
    struct sim_launch l = {.program = h.program,
                           .clocks = &clocks,
                           .grid = {grid, 1, 1},
                           .block = {block, 1, 1},
                           .params = &p,
                           .params_size = PARAMS_XYN,
                           .threads = 2,
                           .sample_ctas = 64};
    struct sim_result r;
    sim_run(h.machine, &l, &r);
    sim_model(&g, &r.counters, (struct sim_block){block, 20, 0, 0}, out);
    harness_free(&h);
    return r.status == SIM_OK ? out->time_s : NAN;
}

/* Counters of the 2^28-float launches, computed from a launch of 2^22 (everything is linear). */
static void test_measured(void) {
    static const struct {
        const char *kernel;
        uint32_t block;
        double measured_us; /* 2^28 floats, cold L2, median of 15 */
    } rows[] = {
        {"relu", 32, 5043},  {"relu", 64, 2523},   {"relu", 128, 1269},  {"relu", 256, 816},
        {"relu", 512, 887},  {"relu", 1024, 984},  {"relu4", 32, 1263},  {"relu4", 128, 504},
        {"relu4", 256, 504}, {"relu4", 512, 508},  {"relu4", 1024, 527}, {"gelu", 256, 870},
        {"gelu", 512, 938},  {"gelu", 1024, 1040},
    };
    float *x = mem_alloc((size_t)4 << 22), *y = mem_alloc((size_t)4 << 22);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int n = strcmp(rows[i].kernel, "relu4") ? 1 << 22 : 1 << 20;
        struct harness h;
        struct gpu g = h200();
        struct sim_estimate e;
        CHECK(harness_load(&h, "pointwise.ptx", rows[i].kernel));
        struct params_xyn p = {harness_buffer(&h, "x", x, (size_t)4 << 22, true),
                               harness_buffer(&h, "y", y, (size_t)4 << 22, false), n, 0};
        struct sim_clocks clocks = sim_clocks_of(&g, rows[i].block, 0);
        struct sim_launch l = {.program = h.program,
                               .clocks = &clocks,
                               .grid = {(uint32_t)n / rows[i].block, 1, 1},
                               .block = {rows[i].block, 1, 1},
                               .params = &p,
                               .params_size = PARAMS_XYN,
                               .threads = 2,
                               .sample_ctas = 64};
        struct sim_result r;
        sim_run(h.machine, &l, &r);
        r.counters.ctas_total *= 64; /* 2^28 */
        r.counters.footprint_load_sectors *= 64;
        r.counters.footprint_store_sectors *= 64;
        sim_model(&g, &r.counters, (struct sim_block){rows[i].block, 20, 0, 0}, &e);
        double off = e.time_s * 1e6 / rows[i].measured_us;
        CHECKF(off > 0.92 && off < 1.08, "%s block %u: %.0f us, measured %.0f (%s)", rows[i].kernel,
               rows[i].block, e.time_s * 1e6, rows[i].measured_us, e.bound);
        harness_free(&h);
    }
    mem_free(x);
    mem_free(y);
}

static void test_order(void) {
    float *x = mem_alloc((size_t)4 << 22), *y = mem_alloc((size_t)4 << 22);
    struct sim_estimate e;
    double scalar = estimate("relu", 1 << 14, 256, 1 << 22, x, y, &e);
    double vector = estimate("relu4", 1 << 12, 256, 1 << 20, x, y, &e);
    CHECK(e.occupancy.warps_sm == 64 && e.waves > 0);
    double tiny = estimate("relu", 1 << 17, 32, 1 << 22, x, y, &e);
    CHECK(!strcmp(e.bound, "dispatch"));
    double wide = estimate("relu", 1 << 12, 1024, 1 << 22, x, y, &e);
    double few = estimate("gelu_fast", 132, 32, 1 << 22, x, y, &e);
    CHECK(!strcmp(e.bound, "latency"));
    double enough = estimate("gelu_fast", 1056, 256, 1 << 22, x, y, &e);
    CHECKF(vector < scalar && scalar < wide && scalar < tiny && enough < few, "%g %g %g %g %g %g",
           vector, scalar, wide, tiny, enough, few);
    mem_free(x);
    mem_free(y);
}

/* What every block reads a second time comes from DRAM again only where it is read after more than
 * L2 holds, by all blocks together: near in time, or where the blocks read the same, it does not.
 */
static void test_read_twice(struct sim_counters c) {
    struct gpu g = h200();
    struct sim_estimate once, near, far, shared;
    g.l2_bytes = 1u << 20;
    sim_model(&g, &c, usual, &once);
    c.timed_l2_sectors *= 2;
    c.timed_load_sectors *= 2;
    c.load_sectors *= 2;
    c.timed_apart_sectors = c.timed_unique_sectors * 8;
    sim_model(&g, &c, usual, &near);
    c.timed_apart_sectors = c.timed_unique_sectors * 64;
    sim_model(&g, &c, usual, &far);
    CHECKF(near.dram_s == once.dram_s && far.dram_s > once.dram_s, "%g %g %g", once.dram_s,
           near.dram_s, far.dram_s);
    c.footprint_load_sectors /= 10;
    sim_model(&g, &c, usual, &shared);
    CHECK(shared.dram_s < once.dram_s && shared.l2_s == far.l2_s);
}

/* Blocks of a cluster wait for one another. */
static void test_cluster(struct sim_counters c) {
    struct gpu g = h200();
    struct sim_estimate alone, two, eight;
    c.gangs = c.ctas;
    sim_model(&g, &c, usual, &alone);
    c.gangs = c.ctas / 2;
    sim_model(&g, &c, usual, &two);
    c.gangs = c.ctas / 8;
    sim_model(&g, &c, usual, &eight);
    CHECKF(alone.time_s < two.time_s && two.time_s < eight.time_s, "%g %g %g", alone.time_s,
           two.time_s, eight.time_s);
}

static void test_monotone(void) {
    struct gpu g = h200();
    struct sim_counters base = {.ctas = 1000,
                                .ctas_total = 1000,
                                .warps = 8000,
                                .warp_instrs = 200000,
                                .lane_instrs = 6400000,
                                .warp_fp32 = 50000,
                                .warp_int = 80000,
                                .load_requests = 8000,
                                .load_sectors = 32000,
                                .store_sectors = 32000,
                                .footprint_load_sectors = 32000,
                                .footprint_store_sectors = 32000,
                                .warp_waits = 8000};
    struct sim_estimate before, after;
    sim_model(&g, &base, usual, &before);
    CHECK(before.time_s > g.launch_s);
    uint64_t *fields[] = {&base.warp_instrs,
                          &base.warp_fp32,
                          &base.warp_int,
                          &base.warp_special,
                          &base.warp_fp64,
                          &base.load_sectors,
                          &base.footprint_load_sectors,
                          &base.footprint_store_sectors,
                          &base.shared_wavefronts,
                          &base.tensor_flops,
                          &base.warp_waits};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        uint64_t old = *fields[i];
        *fields[i] = old * 1000 + 1000000000;
        sim_model(&g, &base, usual, &after);
        CHECKF(after.time_s > before.time_s, "field %zu", i);
        *fields[i] = old;
    }
    struct sim_counters timed = base;
    timed.timed_ctas = 4;
    timed.timed_clocks = timed.timed_clocks_near = 4000;
    timed.timed_load_sectors = timed.timed_l2_sectors = timed.timed_unique_sectors = 128;
    sim_model(&g, &timed, usual, &before);
    uint64_t *parts[] = {&timed.timed_clocks, &timed.timed_slots,   &timed.timed_fp32,
                         &timed.timed_int,    &timed.timed_special, &timed.timed_fp64,
                         &timed.timed_tensor, &timed.timed_lsu,     &timed.store_sectors};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint64_t old = *parts[i];
        *parts[i] = old * 1000 + 1000000;
        sim_model(&g, &timed, usual, &after);
        CHECKF(after.time_s > before.time_s, "timed part %zu", i);
        *parts[i] = old;
    }
    test_read_twice(timed);
    test_cluster(timed);
    base.store_rest_bytes = base.store_sectors * 16; /* in two halves */
    sim_model(&g, &base, usual, &after);
    base.store_rest_bytes = 0;
    sim_model(&g, &base, usual, &before);
    CHECK(after.dram_s > before.dram_s && after.dram_s < 2 * before.dram_s);
    sim_model(&g, &base, (struct sim_block){256, 32, 400, 0}, &after); /* spills go through L2 */
    sim_model(&g, &base, usual, &before);
    CHECK(after.l2_s > before.l2_s && after.time_s > before.time_s);
    sim_model(&g, &base, (struct sim_block){256, 255, 0, 0}, &after); /* fewer blocks fit */
    CHECK(after.time_s >= before.time_s && after.occupancy.blocks_sm == 1);
    sim_model(&g, &(struct sim_counters){0}, usual, &after);
    CHECK(after.time_s == g.launch_s);
    sim_model(&g, &base, (struct sim_block){256, 32, 0, 1u << 20}, &after); /* cannot run at all */
    CHECK(after.time_s == g.launch_s && after.occupancy.blocks_sm == 0);
}

static const struct tap_case cases[] = {
    {"within 8% of times measured on an H200", test_measured},
    {"vectors beat scalars, enough blocks beat few", test_order},
    {"more work never takes less time", test_monotone},
};
TAP_CASES(cases)
