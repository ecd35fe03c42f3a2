/* Copies that end later: groups, mbarriers, bulk and tensor copies, and what a missing wait does.
 */
#include "tap.h"

#include "harness.h"

enum { N = 1024 };
static _Alignas(128) float x[N], y[N];

static struct sim_result run(const char *kernel, uint32_t grid, uint32_t block, int n, int extra,
                             size_t params) {
    struct harness h;
    struct sim_result r = {.status = SIM_UNSUPPORTED};
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = -1;
    }
    if (harness_load(&h, "async.ptx", kernel)) {
        struct params_xyn p = {harness_buffer(&h, "x", x, sizeof x, true),
                               harness_buffer(&h, "y", y, sizeof y, false), n, extra};
        r = harness_run(&h, grid, block, &p, params);
    }
    harness_free(&h);
    return r;
}

static void test_groups(void) {
    struct sim_result r = run("pipeline", 1, 128, N, 0, PARAMS_XYN);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    for (int i = 0; i < N; i++)
        CHECKF(y[i] == (float)(i / 128 * 128 + 127 - i % 128), "%d: %g", i, y[i]);
    CHECK(r.counters.async_bytes == 4 * N);
    r = run("impatient", 1, 128, N, 0, PARAMS_XYN);
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += y[i] != (float)(i / 128 * 128 + 127 - i % 128);
    CHECKF(wrong > N / 2, "%d wrong: a wait that is too short has to show", wrong);
}

static void test_zero_fill(void) {
    struct sim_result r = run("zero_fill", 1, 32, 70, 0, PARAMS_XYN);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    for (int i = 0; i < 128; i++)
        CHECKF(y[i] == (i < 70 ? (float)i : 0), "%d: %g", i, y[i]);
}

static void test_bulk(void) {
    struct sim_result r = run("rows", 1, 256, N, -1, PARAMS_XYNM);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    for (int i = 0; i < N; i++)
        CHECKF(y[i] == (float)i + 1, "%d: %g", i, y[i]);
    r = run("rows", 1, 256, N, 2, PARAMS_XYNM); /* the third copy is forgotten */
    CHECK(r.status == SIM_NO_PROGRESS);
    CHECKF(strstr(r.fault.text, "waits for ever for the mbarrier at shared memory + "), "%s",
           r.fault.text);
}

static void test_tiles(void) {
    struct harness h;
    enum { W = 72, H = 20 }; /* the last tiles hang over */
    static float in[H][W], out[H][W];
    struct err err = {0};
    _Alignas(64) uint8_t params[256];
    for (int i = 0; i < H * W; i++) {
        in[i / W][i % W] = (float)i;
        out[i / W][i % W] = 1;
    }
    CHECK(harness_load(&h, "async.ptx", "tiles"));
    struct tile_map m = {.rank = 2,
                         .type = TILE_MAP_F32,
                         .extent = {W, H},
                         .stride = {4, W * 4},
                         .box = {32, 8},
                         .step = {1, 1}};
    m.global = harness_buffer(&h, "in", in, sizeof in, true);
    CHECKF(sim_tensormap(&m, params, &err), "%s", err.text);
    m.global = harness_buffer(&h, "out", out, sizeof out, false);
    CHECK(sim_tensormap(&m, params + 128, &err));
    struct sim_launch l = {.program = h.program,
                           .grid = {3, 3, 1},
                           .block = {32, 1, 1},
                           .params = params,
                           .params_size = 256,
                           .threads = 2};
    struct sim_result r;
    sim_run(h.machine, &l, &r);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    for (int i = 0; i < H; i++)
        for (int k = 0; k < W; k++)
            CHECKF(out[i][k] == 1 + (k < 4 ? 0 : 2 * in[i][k - 4]), "%d %d: %g", i, k, out[i][k]);
    memset(params, 7, 128);
    sim_run(h.machine, &l, &r);
    CHECKF(r.status == SIM_TRAP && strstr(r.fault.text, "there is no tensor map"), "%s",
           r.fault.text);
    harness_free(&h);
}

static void test_multicast(void) {
    struct sim_result r = run("multicast", 8, 64, 0, 0, 16);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    for (int i = 0; i < 512; i++)
        CHECKF(y[i] == (float)(i % 64 + i / 64 % 4), "%d: %g", i, y[i]);
}

static void test_specialised(void) {
    struct sim_result r = run("specialised", 1, 64, N, 0, PARAMS_XYN);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    for (int i = 0; i < N; i++)
        CHECKF(y[i] == (float)(i / 32 * 32 + 31 - i % 32), "%d: %g", i, y[i]);
}

/* Producers and consumers in orders that are drawn: each goes the same way twice, they differ among
 * themselves, and their results do not. */
static void test_orders(void) {
    enum { ORDERS = 32 };
    static float first[N];
    unsigned differ = 0, wrong = 0;
    uint64_t last = 0;
    for (uint32_t order = 1; order <= ORDERS; order++) {
        for (int again = 0; again < 2; again++) {
            struct harness h;
            struct sim_result r = {.status = SIM_UNSUPPORTED};
            memset(y, 0, sizeof y);
            if (harness_load(&h, "async.ptx", "specialised")) {
                struct params_xyn p = {harness_buffer(&h, "x", x, sizeof x, true),
                                       harness_buffer(&h, "y", y, sizeof y, false), N, 0};
                struct sim_launch l = {.program = h.program,
                                       .grid = {1, 1, 1},
                                       .block = {64, 1, 1},
                                       .params = &p,
                                       .params_size = PARAMS_XYN,
                                       .order = order};
                sim_run(h.machine, &l, &r);
                CHECK(sim_has_choices(h.program));
            }
            harness_free(&h);
            CHECKF(r.status == SIM_OK, "order %u: %s", order, r.fault.text);
            for (int i = 0; i < N; i++)
                wrong += y[i] != (float)(i / 32 * 32 + 31 - i % 32);
            if (!again)
                memcpy(first, y, sizeof y);
            else
                CHECK(!memcmp(first, y, sizeof y) && r.counters.warp_instrs == last);
            differ += !again && r.counters.warp_instrs != last;
            last = r.counters.warp_instrs;
        }
    }
    CHECKF(wrong == 0, "%u wrong", wrong);
    CHECKF(differ > ORDERS / 4, "%u orders differ from the one before", differ);
}

/* PTX that breaks a rule of the hardware. */
static void test_illegal(void) {
    static const struct {
        const char *body, *text;
        enum sim_status status;
    } rows[] = {
        {"mov.u32 %r1, 0; mbarrier.arrive.shared.b64 %rd2, [%r1];", "initialised", SIM_TRAP},
        {"mov.u32 %r1, 0; mbarrier.init.shared.b64 [%r1], 0;", "", SIM_TRAP},
        {"mov.u32 %r1, 4; mbarrier.init.shared.b64 [%r1], 1;", "multiple of 8", SIM_MISALIGNED},
        {"mov.u32 %r1, 1024; mbarrier.init.shared.b64 [%r1], 1;", "", SIM_OUT_OF_BOUNDS},
        {"mov.u32 %r1, 0; mov.u32 %r2, 12; cp.async.bulk.global.shared::cta.bulk_group [%rd1], "
         "[%r1], %r2;",
         "", SIM_TRAP},
        {"mov.u32 %r1, 0; cp.async.ca.shared.global [%r1], [%rd1+64], 4;", "past the end",
         SIM_OUT_OF_BOUNDS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        struct arena *a = arena_new(1u << 20);
        _Alignas(16) uint32_t out[16] = {0};
        bool ok = harness_load_text(&h, harness_kernel(a, rows[i].body), "k");
        CHECKF(ok, "%s: %s", rows[i].body, h.err.text);
        uint64_t p = harness_buffer(&h, "out", out, sizeof out, false);
        struct sim_launch l = {.program = h.program,
                               .grid = {1, 1, 1},
                               .block = {32, 1, 1},
                               .dynamic_shared = 256,
                               .params = &p,
                               .params_size = 8};
        struct sim_result r = {.status = SIM_OK};
        if (ok)
            sim_run(h.machine, &l, &r);
        CHECKF(r.status == rows[i].status && strstr(r.fault.text, rows[i].text), "%s: %d %s",
               rows[i].body, r.status, r.fault.text);
        harness_free(&h);
        arena_free(a);
    }
}

static const struct tap_case cases[] = {
    {"groups of cp.async, and one wait too short", test_groups},
    {"cp.async fills with zeros", test_zero_fill},
    {"rows by bulk copies, and one forgotten", test_bulk},
    {"tiles by tensor maps", test_tiles},
    {"one load for a cluster", test_multicast},
    {"producers and consumers", test_specialised},
    {"the same in drawn orders", test_orders},
    {"rules of the hardware", test_illegal},
};
TAP_CASES(cases)
