/* Launches: limits, threads, samples, budgets, deadlocks, traps. */
#include "tap.h"

#include "harness.h"

static void test_limits(void) {
    struct harness h;
    int out[64];
    CHECK(harness_load(&h, "pointwise.ptx", "bounded"));
    uint64_t p = harness_buffer(&h, "x", out, sizeof out, false);
    static const struct {
        const char *name;
        uint32_t grid[3], block[3];
        size_t shared, params;
        enum sim_status status;
        const char *text;
    } rows[] = {
        {"fits", {1, 1, 1}, {64, 1, 1}, 0, 8, SIM_OK, ""},
        {"zero grid", {1, 0, 1}, {32, 1, 1}, 0, 8, SIM_BAD_LAUNCH, "has a zero"},
        {"zero block", {1, 1, 1}, {0, 1, 1}, 0, 8, SIM_BAD_LAUNCH, "has a zero"},
        {"block too large", {1, 1, 1}, {2048, 1, 1}, 0, 8, SIM_BAD_LAUNCH, "limit of 1024"},
        {"product too large", {1, 1, 1}, {64, 64, 64}, 0, 8, SIM_BAD_LAUNCH, "limit of 1024"},
        {"product overflows", {1, 1, 1}, {1u << 31, 1u << 31, 4}, 0, 8, SIM_BAD_LAUNCH, "limit"},
        {"z too large", {1, 1, 1}, {1, 1, 65}, 0, 8, SIM_BAD_LAUNCH, "z: 64"},
        {"grid y too large", {1, 65536, 1}, {32, 1, 1}, 0, 8, SIM_BAD_LAUNCH, "over the limits"},
        {"launch bounds", {1, 1, 1}, {128, 1, 1}, 0, 8, SIM_BAD_LAUNCH, "__launch_bounds__"},
        {"shared memory", {1, 1, 1}, {32, 1, 1}, 300000, 8, SIM_BAD_LAUNCH, "shared memory"},
        {"parameters", {1, 1, 1}, {32, 1, 1}, 0, 12, SIM_BAD_LAUNCH, "12 bytes of parameters"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sim_launch l = {.program = h.program,
                               .dynamic_shared = rows[i].shared,
                               .params = &p,
                               .params_size = rows[i].params,
                               .threads = 1};
        memcpy(l.grid, rows[i].grid, sizeof l.grid);
        memcpy(l.block, rows[i].block, sizeof l.block);
        struct sim_result r;
        sim_run(h.machine, &l, &r);
        CHECKF(r.status == rows[i].status, "%s: status %d", rows[i].name, r.status);
        CHECKF(strstr(r.fault.text, rows[i].text), "%s: %s", rows[i].name, r.fault.text);
    }
    harness_free(&h);
}

static bool same(const struct sim_counters *a, const struct sim_counters *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

#define MANY (1 << 16)
static float big_x[MANY], big_y[2][MANY];

static struct sim_result run_gelu(unsigned threads, int which, size_t y_bytes, uint64_t sample) {
    struct harness h;
    struct sim_result r = {.status = SIM_UNSUPPORTED};
    if (harness_load(&h, "pointwise.ptx", "gelu")) {
        struct params_xyn p = {harness_buffer(&h, "x", big_x, sizeof big_x, true),
                               harness_buffer(&h, "y", big_y[which], y_bytes, false), MANY, 0};
        struct sim_launch l = {.program = h.program,
                               .grid = {MANY / 128, 1, 1},
                               .block = {128, 1, 1},
                               .params = &p,
                               .params_size = PARAMS_XYN,
                               .threads = threads,
                               .sample_ctas = sample};
        sim_run(h.machine, &l, &r);
    }
    harness_free(&h);
    return r;
}

static void test_threads(void) {
    for (int i = 0; i < MANY; i++)
        big_x[i] = (float)(i - MANY / 2) * 1e-4f;
    struct sim_result one = run_gelu(1, 0, sizeof big_y[0], 0);
    struct sim_result five = run_gelu(5, 1, sizeof big_y[1], 0);
    CHECK(one.status == SIM_OK && five.status == SIM_OK);
    CHECK(same(&one.counters, &five.counters));
    CHECK(memcmp(big_y[0], big_y[1], sizeof big_y[0]) == 0);
    CHECK(one.counters.flops > 0 && one.counters.warp_special > 0);
    for (int t = 1; t < 8; t++) { /* every CTA from the 200th on is out of bounds */
        struct sim_result r = run_gelu((unsigned)t, 0, 200 * 128 * 4, 0);
        CHECK(r.status == SIM_OUT_OF_BOUNDS);
        CHECKF(r.fault.cta[0] == 200 && r.fault.thread[0] == 0, "threads %d: %s", t, r.fault.text);
    }
}

static void test_samples(void) {
    struct sim_result all = run_gelu(1, 0, sizeof big_y[0], 0);
    memset(big_y[1], 0x7f, sizeof big_y[1]);
    struct sim_result some = run_gelu(3, 1, sizeof big_y[1], 8);
    CHECK(some.status == SIM_OK && some.counters.ctas == 8 && some.counters.ctas_total == 512);
    CHECK(some.counters.load_bytes * 64 == all.counters.load_bytes);
    CHECK(some.counters.touched_store_sectors * 64 == all.counters.touched_store_sectors);
    CHECK(big_y[1][0] == big_y[0][0] && big_y[1][MANY - 1] == big_y[0][MANY - 1]);
    int written = 0;
    for (int b = 0; b < 512; b++)
        written += memcmp(&big_y[1][b * 128], &big_y[0][b * 128], 512) == 0;
    CHECK(written == 8);
    CHECK(run_gelu(1, 1, sizeof big_y[1], 9999).counters.ctas == 512);
    CHECK(run_gelu(1, 1, sizeof big_y[1], 1).counters.ctas == 1);
}

static void test_ends(void) {
    static const struct {
        const char *kernel;
        uint32_t grid, block;
        int n;
        size_t params;
        enum sim_status status;
        const char *text;
    } rows[] = {
        {"spin", 4, 64, 0, 8, SIM_BUDGET, "used up its instructions"},
        {"trap", 4, 64, 130, 12, SIM_TRAP, "thread (2,0,0) of block (2,0,0) executed trap"},
        {"trap", 4, 64, 1000, 12, SIM_OK, ""},
        {"deadlock", 1, 64, 0, 8, SIM_NO_PROGRESS,
         "thread (0,0,0) of block (0,0,0) waits for ever"},
        {"deadlock", 1, 32, 0, 8, SIM_OK, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (unsigned threads = 1; threads < 4; threads++) {
            struct harness h;
            int x[64] = {0};
            CHECK(harness_load(&h, "pointwise.ptx", rows[i].kernel));
            struct {
                uint64_t x;
                int n;
            } p = {harness_buffer(&h, "x", x, sizeof x, false), rows[i].n};
            struct sim_launch l = {.program = h.program,
                                   .grid = {rows[i].grid, 1, 1},
                                   .block = {rows[i].block, 1, 1},
                                   .params = &p,
                                   .params_size = rows[i].params,
                                   .threads = threads,
                                   .max_warp_instrs = 100000};
            struct sim_result r;
            sim_run(h.machine, &l, &r);
            CHECKF(r.status == rows[i].status, "%s: status %d", rows[i].kernel, r.status);
            CHECKF(strstr(r.fault.text, rows[i].text), "%s: %s", rows[i].kernel, r.fault.text);
            CHECK(r.counters.warp_instrs < 1000000);
            harness_free(&h);
        }
}

/* The budget is the whole launch's, and enough is enough for any number of threads. */
static void test_budget(void) {
    struct sim_result r = run_gelu(1, 0, sizeof big_y[0], 0);
    uint64_t steps = 0;
    for (uint64_t b = r.counters.warp_instrs / 2; b < r.counters.warp_instrs * 2; b += b / 8) {
        struct harness h;
        enum sim_status status[2];
        CHECK(harness_load(&h, "pointwise.ptx", "gelu"));
        struct params_xyn p = {harness_buffer(&h, "x", big_x, sizeof big_x, true),
                               harness_buffer(&h, "y", big_y[0], sizeof big_y[0], false), MANY, 0};
        for (int t = 0; t < 2; t++) {
            struct sim_launch l = {.program = h.program,
                                   .grid = {MANY / 128, 1, 1},
                                   .block = {128, 1, 1},
                                   .params = &p,
                                   .params_size = PARAMS_XYN,
                                   .threads = t ? 4 : 1,
                                   .max_warp_instrs = b};
            sim_run(h.machine, &l, &r);
            status[t] = r.status;
        }
        CHECKF(status[0] == status[1], "budget %llu: %d and %d", (unsigned long long)b, status[0],
               status[1]);
        steps += status[0] == SIM_OK;
        harness_free(&h);
    }
    CHECK(steps > 0 && steps < 12);
}

static void test_shapes(void) {
    static const char body[] =
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ctaid.y;"
        "mad.lo.s32 %r5, %r2, 5, %r1; mad.lo.s32 %r5, %r3, 15, %r5; mad.lo.s32 %r5, %r4, 30, %r5;"
        "mul.wide.u32 %rd2, %r5, 4; add.s64 %rd1, %rd1, %rd2; mov.u32 %r6, %ntid.y;"
        "mov.u32 %r7, %nctaid.y; mad.lo.s32 %r6, %r6, 100, %r7; add.s32 %r6, %r6, %r5;"
        "st.global.u32 [%rd1], %r6;";
    struct harness h;
    struct arena *a = arena_new(1u << 20);
    uint32_t out[60] = {0};
    CHECK(harness_load_text(&h, harness_kernel(a, body), "k"));
    uint64_t p = harness_buffer(&h, "out", out, sizeof out, false);
    struct sim_launch l = {.program = h.program,
                           .grid = {1, 2, 1},
                           .block = {5, 3, 2},
                           .params = &p,
                           .params_size = 8,
                           .threads = 2};
    struct sim_result r;
    sim_run(h.machine, &l, &r);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    for (uint32_t i = 0; i < 60; i++)
        CHECKF(out[i] == 302 + i, "%u: %u", i, out[i]);
    harness_free(&h);
    arena_free(a);
}

/* What a kernel sees of the machine: SM, clocks, timer, grid, warp slot, windows, its buffer. */
struct seen {
    uint64_t sm, clock, later, timer, grid, grid32, warp, warps, shared, buffer, env;
};

static struct seen look(uint64_t secret, const struct sim_launch *as, uint32_t align) {
    struct arena *a = arena_new(1u << 20);
    struct ptx_module *m;
    struct sim_program *p;
    struct err err = {0};
    struct seen out = {0};
    struct sim_result r = {.status = SIM_UNSUPPORTED};
    struct sim_machine *machine = sim_machine_new(secret);
    str text = harness_kernel(
        a, ".shared .b64 s[4];\nmov.u32 %r1, %smid; cvt.u64.u32 %rd2, %r1; st.u64 [%rd1], %rd2;\n"
           "mov.u64 %rd2, %clock64; st.u64 [%rd1+8], %rd2; mov.u64 %rd2, %clock64;\n"
           "st.u64 [%rd1+16], %rd2; mov.u64 %rd2, %globaltimer; st.u64 [%rd1+24], %rd2;\n"
           "mov.u64 %rd2, %gridid; st.u64 [%rd1+32], %rd2; mov.u32 %r1, %gridid;\n"
           "cvt.u64.u32 %rd2, %r1; st.u64 [%rd1+40], %rd2; mov.u32 %r1, %warpid;\n"
           "cvt.u64.u32 %rd2, %r1; st.u64 [%rd1+48], %rd2; mov.u32 %r1, %nwarpid;\n"
           "cvt.u64.u32 %rd2, %r1; st.u64 [%rd1+56], %rd2; mov.u64 %rd3, s;\n"
           "cvta.shared.u64 %rd2, %rd3; st.u64 [%rd2], %rd2; ld.u64 %rd4, [%rd2];\n"
           "st.u64 [%rd1+64], %rd4; st.u64 [%rd1+72], %rd1; mov.u32 %r1, %envreg7;\n"
           "cvt.u64.u32 %rd2, %r1; st.u64 [%rd1+80], %rd2;");
    struct sim_buffer b = {.name = S("out"), .host = &out, .size = sizeof out, .align = align};
    uint64_t at = sim_machine_add(machine, &b);
    if (ptx_parse(text, a, &m, &err) && sim_load(m, &m->entries[0], a, &p, &err)) {
        struct sim_launch l = *as;
        l.program = p;
        l.grid[0] = l.grid[1] = l.grid[2] = l.block[0] = l.block[1] = l.block[2] = 1;
        l.params = &at;
        l.params_size = sizeof at;
        sim_run(machine, &l, &r);
    }
    CHECKF(r.status == SIM_OK, "%s%s", r.fault.text, err.text);
    sim_machine_free(machine);
    arena_free(a);
    return out;
}

static void test_machine_seen(void) {
    struct sim_launch l = {.number = 77, .time_ns = UINT64_C(1800000000) * 1000000000, .sms = 132};
    unsigned sms = 0, clocks = 0, warps = 0, windows = 0, buffers = 0, odd = 0;
    struct seen last = {0};
    for (uint64_t key = 1; key <= 16; key++) {
        l.noise = key;
        struct seen s = look(key, &l, 16);
        CHECK(s.sm < 132 && s.warp < 64 && s.warps == 64 && s.env == 0);
        CHECK(s.grid == 77 && s.grid32 == 77);
        CHECK(s.clock >> 40 && s.later > s.clock && s.later - s.clock < 100);
        CHECK(s.timer >= l.time_ns && s.timer < l.time_ns + 1000000 && s.timer % 32 == 0);
        CHECK(s.shared >> 40 >= 0x7e && s.buffer >> 40 == 0x7f && s.buffer % 16 == 0);
        sms += s.sm != last.sm;
        clocks += s.clock != last.clock;
        warps += s.warp != last.warp;
        windows += s.shared != last.shared;
        buffers += s.buffer != last.buffer;
        odd += s.buffer % 32 != 0;
        last = s;
    }
    CHECKF(sms > 8 && clocks == 16 && warps > 8, "%u %u %u", sms, clocks, warps);
    CHECKF(windows == 16 && buffers == 16 && odd > 2 && odd < 14, "%u %u %u", windows, buffers,
           odd);
    l.noise = 0;
    struct seen one = look(1, &l, 0), two = look(1, &l, 0);
    CHECK(!memcmp(&one, &two, sizeof one));
    CHECK(one.buffer % (2 << 20) == 0);
}

static const struct tap_case cases[] = {
    {"limits of a launch", test_limits},
    {"any number of threads, one result", test_threads},
    {"samples are spread over the grid", test_samples},
    {"endless loops, traps, deadlocks", test_ends},
    {"the budget for any number of threads", test_budget},
    {"three-dimensional blocks and grids", test_shapes},
    {"what a kernel sees of the machine is a GPU's, and drawn", test_machine_seen},
};
TAP_CASES(cases)
