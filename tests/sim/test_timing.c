/* A block's own time: what depends takes longer than what does not, what is near is there sooner,
 * and none of it depends on how many threads the host has. */
#include "sim/model.h"
#include "tap.h"

#include "harness.h"

enum { FLOATS = 1 << 16 };

static struct sim_counters timed_beside(size_t shared, const char *kernel, uint32_t grid,
                                        uint32_t block, int n, unsigned threads, unsigned checks) {
    static float x[FLOATS], y[FLOATS];
    static struct sim_findings findings;
    struct sim_clocks clocks = sim_clocks_of(gpu_find(S("h200")), block, shared);
    struct harness h;
    struct sim_result r = {.status = SIM_BAD_LAUNCH};
    if (harness_load(&h, "timing.ptx", kernel)) {
        struct params_xyn p = {harness_buffer(&h, "x", x, sizeof x, true),
                               harness_buffer(&h, "y", y, sizeof y, false), n, 0};
        struct sim_launch l = {.program = h.program,
                               .grid = {grid, 1, 1},
                               .block = {block, 1, 1},
                               .params = &p,
                               .params_size = PARAMS_XYN,
                               .threads = threads,
                               .checks = checks,
                               .findings = &findings,
                               .clocks = &clocks};
        sim_run(h.machine, &l, &r);
    }
    CHECKF(r.status == SIM_OK, "%s: %s", kernel, r.fault.text);
    harness_free(&h);
    return r.counters;
}

static struct sim_counters timed(const char *kernel, uint32_t grid, uint32_t block, int n,
                                 unsigned threads, unsigned checks) {
    return timed_beside(0, kernel, grid, block, n, threads, checks);
}

static double clocks_of(const struct sim_counters *c) {
    return c->timed_ctas ? (double)c->timed_clocks / (double)c->timed_ctas : NAN;
}

static void arithmetic(void) {
    struct sim_counters chain = timed("chain", 1, 32, 10, 1, 0);
    struct sim_counters apart = timed("apart", 1, 32, 10, 1, 0);
    double load = 861; /* 435 ns */
    /* 320 dependent operations of four clocks; the same apart are held back by their slots. */
    CHECKF(clocks_of(&chain) > load + 1280 && clocks_of(&chain) < load + 1700, "%.0f",
           clocks_of(&chain));
    CHECKF(clocks_of(&apart) > load + 320 && clocks_of(&apart) < load + 800, "%.0f",
           clocks_of(&apart));
    CHECK(chain.timed_fp32 >= 320 && chain.timed_fp32 < 400);
}

static void memory(void) {
    struct sim_counters one = timed("one_load", 1, 256, 32, 1, 0);
    struct sim_counters four = timed("four_loads", 1, 256, 32, 1, 0);
    struct sim_counters again = timed("again", 1, 256, 32, 1, 0);
    CHECKF(clocks_of(&one) > 32 * 861 && clocks_of(&one) < 36 * 920, "%.0f", clocks_of(&one));
    CHECKF(clocks_of(&four) > 0.2 * clocks_of(&one) && clocks_of(&four) < 0.35 * clocks_of(&one),
           "%.0f of %.0f", clocks_of(&four), clocks_of(&one));
    CHECKF(clocks_of(&again) < 0.25 * clocks_of(&one), "%.0f of %.0f", clocks_of(&again),
           clocks_of(&one));
    CHECK(one.timed_clocks_near < one.timed_clocks);
    CHECK(one.timed_unique_sectors == 32 * 32 && one.timed_l2_sectors == 32 * 32);
    CHECK(again.timed_load_sectors == 32 * 32 && again.timed_l2_sectors == 4 * 32 &&
          again.timed_unique_sectors == 4 * 32);
}

/* Where shared memory leaves L1 hardly anything, what a block reads again is missed again, so many
 * sectors after the last time as it missed in between. */
static void read_again(void) {
    size_t all = gpu_find(S("h200"))->l1_bytes;
    struct sim_counters kept = timed("again", 1, 256, 32, 1, 0);
    struct sim_counters lost = timed_beside(all, "again", 1, 256, 32, 1, 0);
    CHECK(!kept.timed_apart_sectors && lost.timed_unique_sectors == kept.timed_unique_sectors);
    uint64_t times = lost.timed_l2_sectors - lost.timed_unique_sectors;
    CHECKF(times > 0 && lost.timed_apart_sectors >= times &&
               lost.timed_apart_sectors <= times * lost.timed_unique_sectors,
           "%llu missed, %llu apart", (unsigned long long)lost.timed_l2_sectors,
           (unsigned long long)lost.timed_apart_sectors);
}

static void conflicts(void) {
    struct sim_counters even = timed("banks", 1, 256, 1, 1, 0);
    struct sim_counters odd = timed("banks", 1, 256, 32, 1, 0);
    CHECKF(odd.timed_lsu > even.timed_lsu + 8 * 64 * 30, "%llu %llu",
           (unsigned long long)odd.timed_lsu, (unsigned long long)even.timed_lsu);
    CHECK(clocks_of(&odd) > clocks_of(&even) + 64 * 30);
}

static void repeatable(void) {
    struct sim_counters a = timed("one_load", 100, 256, 32, 1, 0);
    struct sim_counters b = timed("one_load", 100, 256, 32, 4, 0);
    CHECK(a.timed_ctas == 4 && memcmp(&a, &b, sizeof a) == 0);
    a = timed("one_load", 3, 256, 32, 2, 0);
    CHECK(a.timed_ctas == 3);
    a = timed("one_load", 3, 256, 32, 2, SIM_CHECK_ALL);
    CHECK(a.timed_ctas == 0); /* whoever checks does not time */
}

static const struct tap_case cases[] = {
    {"dependent arithmetic waits, other does not", arithmetic},
    {"loads that are under way together; L1", memory},
    {"what is read again after L1 has lost it, and how long after", read_again},
    {"bank conflicts hold the load/store unit", conflicts},
    {"the same on any number of threads", repeatable},
};
TAP_CASES(cases)
