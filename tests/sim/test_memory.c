/* Accesses: exact sector counts of known patterns, and every way to get one wrong. */
#include "tap.h"

#include "harness.h"

#define N 4096

static float xs[N + 64], ys[N + 64];

static struct sim_result run_xy(const char *kernel, uint32_t grid, uint32_t block, size_t x_bytes,
                                size_t y_bytes, int32_t n, int32_t m, size_t params) {
    struct harness h;
    struct sim_result r = {.status = SIM_UNSUPPORTED};
    for (int i = 0; i < N + 64; i++)
        xs[i] = (float)(i % 101 - 50), ys[i] = -1;
    if (harness_load(&h, "pointwise.ptx", kernel)) {
        struct params_xyn p = {harness_buffer(&h, "x", xs, x_bytes, true),
                               harness_buffer(&h, "y", ys, y_bytes, false), n, m};
        r = harness_run(&h, grid, block, &p, params);
    }
    harness_free(&h);
    return r;
}

static void test_patterns(void) {
    static const struct {
        const char *name, *kernel;
        int32_t n, m;
        size_t params;
        uint64_t load_sectors, store_sectors, touched_loads;
    } rows[] = {
        /* two blocks of 64 threads: four requests each way */
        {"coalesced floats: 4 sectors a request", "strided", 1, 0, PARAMS_XYNM, 16, 16, 16},
        {"stride 2: 8 sectors", "strided", 2, 0, PARAMS_XYNM, 32, 16, 32},
        {"stride 8: a sector a lane", "strided", 8, 0, PARAMS_XYNM, 128, 16, 128},
        {"misaligned by 4 bytes: 5 sectors", "strided", 1, 1, PARAMS_XYNM, 20, 16, 17},
        {"broadcast: 1 sector", "strided", 0, 7, PARAMS_XYNM, 4, 16, 1},
        {"backwards: 4 sectors", "strided", -1, 1000, PARAMS_XYNM, 20, 16, 17},
        {"float4: 16 sectors", "relu4", 128, 0, PARAMS_XYN, 64, 64, 64},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sim_result r = run_xy(rows[i].kernel, 2, 64, sizeof xs, sizeof ys, rows[i].n,
                                     rows[i].m, rows[i].params);
        CHECKF(r.status == SIM_OK, "%s: %s", rows[i].name, r.fault.text);
        CHECKF(r.counters.load_requests == 4 && r.counters.store_requests == 4, "%s", rows[i].name);
        CHECKF(r.counters.load_sectors == rows[i].load_sectors, "%s: %llu", rows[i].name,
               (unsigned long long)r.counters.load_sectors);
        CHECKF(r.counters.store_sectors == rows[i].store_sectors, "%s: %llu", rows[i].name,
               (unsigned long long)r.counters.store_sectors);
        CHECKF(r.counters.touched_load_sectors == rows[i].touched_loads, "%s: %llu", rows[i].name,
               (unsigned long long)r.counters.touched_load_sectors);
    }
}

static void test_counters(void) {
    struct sim_result r = run_xy("relu", 3, 40, sizeof xs, sizeof ys, 100, 0, PARAMS_XYN);
    const struct sim_counters *c = &r.counters;
    CHECK(r.status == SIM_OK);
    CHECK(c->ctas == 3 && c->ctas_total == 3 && c->warps == 6);
    CHECK(c->load_bytes == 400 && c->store_bytes == 400);
    CHECK(c->load_requests == 5); /* the last warp of the last block is past n */
    CHECK(c->widest_load == 4 && c->widest_store == 4);
    CHECK(c->divergent_branches == 1); /* 80 + 20: the third block's first warp */
    CHECK(c->warp_waits == 5);
    CHECK(c->warp_instrs == c->warp_fp32 + c->warp_fp64 + c->warp_int + c->warp_special +
                                c->warp_memory + c->warp_control);
    for (int i = 0; i < 100; i++)
        CHECKF(ys[i] == (xs[i] > 0 ? xs[i] : 0), "element %d", i);
    for (int i = 100; i < 120; i++)
        CHECKF(ys[i] == -1, "element %d was written", i);
    r = run_xy("relu4", 1, 32, sizeof xs, sizeof ys, 32, 0, PARAMS_XYN);
    CHECK(r.counters.widest_load == 16 && r.counters.load_bytes == 512);
}

static void test_faults(void) {
    static const struct {
        const char *name, *kernel;
        uint32_t grid, block;
        size_t x_bytes, y_bytes;
        int32_t n, m;
        size_t params;
        enum sim_status status;
        const char *text;
    } rows[] = {
        {"one element past the end", "relu", 5, 32, sizeof xs, 512, 160, 0, PARAMS_XYN,
         SIM_OUT_OF_BOUNDS,
         "pointwise.cu:5: thread (0,0,0) of block (4,0,0) writes 4 bytes at y + 512, 0 bytes past "
         "the end of y (512 bytes)"},
        {"the last lane alone", "relu", 4, 32, 508, 512, 128, 0, PARAMS_XYN, SIM_OUT_OF_BOUNDS,
         "pointwise.cu:5: thread (31,0,0) of block (3,0,0) reads 4 bytes at x + 508, 0 bytes past "
         "the end of x (508 bytes)"},
        {"half of an element", "relu", 4, 32, 510, 512, 128, 0, PARAMS_XYN, SIM_OUT_OF_BOUNDS,
         "reads 4 bytes at x + 508, reaching 2 bytes past the end of x (510 bytes)"},
        {"before the start", "strided", 1, 32, 512, 512, 1, -1, PARAMS_XYNM, SIM_OUT_OF_BOUNDS,
         "thread (0,0,0) of block (0,0,0) reads 4 bytes at x - 4, 4 bytes before the start of x"},
        {"far away", "strided", 1, 32, 512, 512, 1, 1 << 16, PARAMS_XYNM, SIM_OUT_OF_BOUNDS,
         "reads 4 bytes at x + 262144, 261632 bytes past the end of x (512 bytes)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sim_result r = run_xy(rows[i].kernel, rows[i].grid, rows[i].block, rows[i].x_bytes,
                                     rows[i].y_bytes, rows[i].n, rows[i].m, rows[i].params);
        CHECKF(r.status == rows[i].status, "%s: status %d", rows[i].name, r.status);
        CHECKF(strstr(r.fault.text, rows[i].text), "%s: %s", rows[i].name, r.fault.text);
    }
    struct sim_result r = run_xy("relu", 5, 32, sizeof xs, 512, 160, 0, PARAMS_XYN);
    CHECK(r.fault.store && r.fault.bytes == 4 && r.fault.cta[0] == 4 && r.fault.thread[0] == 0);
    CHECK(r.fault.src_line == 5);
}

/* Pointers that the kernel is given: null, shifted by 4, or to an input where it writes. */
static void test_pointers(void) {
    static const struct {
        const char *name, *kernel;
        int64_t x, y; /* offsets; -1: null, -2: y points to x */
        enum sim_status status;
        const char *text;
    } rows[] = {
        {"null", "relu", -1, 0, SIM_OUT_OF_BOUNDS, "reads 4 bytes at address 0: a null pointer"},
        {"misaligned float4", "relu4", 4, 0, SIM_MISALIGNED,
         "reads 16 bytes at x + 4, which is not a multiple of 16"},
        {"misaligned float", "relu", 2, 0, SIM_MISALIGNED, "x + 2, which is not a multiple of 4"},
        {"misaligned store", "relu4", 0, 8, SIM_MISALIGNED, "writes 16 bytes at y + 8"},
        {"writes its input", "relu", 0, -2, SIM_WROTE_INPUT,
         "writes 4 bytes at x + 0, but x is an input and may not be changed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        if (!harness_load(&h, "pointwise.ptx", rows[i].kernel)) {
            CHECK(false);
            harness_free(&h);
            continue;
        }
        uint64_t x = harness_buffer(&h, "x", xs, sizeof xs, true);
        uint64_t y = harness_buffer(&h, "y", ys, sizeof ys, false);
        CHECK(x % 512 == 0 && y % 512 == 0 && y - x >= sizeof xs + (1u << 20));
        struct params_xyn p = {rows[i].x == -1 ? 0 : x + (uint64_t)rows[i].x,
                               rows[i].y == -2 ? x : y + (uint64_t)rows[i].y, 32, 0};
        struct sim_result r = harness_run(&h, 1, 32, &p, PARAMS_XYN);
        CHECKF(r.status == rows[i].status, "%s: status %d", rows[i].name, r.status);
        CHECKF(strstr(r.fault.text, rows[i].text), "%s: %s", rows[i].name, r.fault.text);
        harness_free(&h);
    }
}

struct pages {
    int calls[8];
};

static void fill(void *ctx, size_t offset, size_t n, void *dst) {
    struct pages *p = ctx;
    p->calls[offset / SIM_PAGE]++;
    for (size_t i = 0; i < n; i += 4) {
        float v = (float)((offset + i) / 4);
        memcpy((char *)dst + i, &v, 4);
    }
}

static void test_lazy(void) {
    struct harness h;
    struct pages pages = {{0}};
    static float x[4 * 1024 + 10], y[4 * 1024];
    CHECK(harness_load(&h, "pointwise.ptx", "strided"));
    struct sim_buffer b = {.name = S("x"),
                           .host = x,
                           .size = sizeof x,
                           .read_only = true,
                           .touch = fill,
                           .touch_ctx = &pages};
    struct params_xyn p = {sim_machine_add(h.machine, &b),
                           harness_buffer(&h, "y", y, sizeof y, false), 1, 1020};
    struct sim_result r = harness_run(&h, 1, 32, &p, PARAMS_XYNM);
    CHECK(r.status == SIM_OK);
    CHECK(pages.calls[0] == 1 && pages.calls[1] == 1 && !pages.calls[2] && !pages.calls[4]);
    CHECK(y[0] == 1020 && y[31] == 1051);
    p.m = 4 * 1024 + 9;
    p.n = 0;
    r = harness_run(&h, 1, 32, &p, PARAMS_XYNM); /* the last page is not whole */
    CHECK(r.status == SIM_OK && pages.calls[4] == 1 && y[0] == 4 * 1024 + 9);
    r = harness_run(&h, 1, 32, &p, PARAMS_XYNM);
    CHECK(pages.calls[4] == 1 && pages.calls[0] == 1);
    harness_free(&h);
}

/* The host's bytes stay where a page is made later, and what it overwrites is not made at all. */
static void test_fill(void) {
    struct harness h;
    struct pages pages = {{0}};
    static float x[4 * 1024 + 10], y[4 * 1024];
    const float seven = 7, one = 1;
    CHECK(harness_load(&h, "pointwise.ptx", "strided"));
    struct sim_buffer b = {
        .name = S("x"), .host = x, .size = sizeof x, .touch = fill, .touch_ctx = &pages};
    struct sim_buffer constant = {.name = S("c"), .host = y, .size = 4, .read_only = true};
    uint64_t to = sim_machine_add(h.machine, &b), c = sim_machine_add(h.machine, &constant);
    CHECK(sim_machine_fill(h.machine, to + 4 * 1020, &seven, 4, 2048 - 1020 + 4));
    CHECK(pages.calls[0] == 1 && !pages.calls[1] && pages.calls[2] == 1 && !pages.calls[3]);
    CHECK(sim_machine_fill(h.machine, to + 4 * 4096, &one, 4, 10) && !pages.calls[4]);
    struct params_xyn p = {to, harness_buffer(&h, "y", y, sizeof y, false), 1, 1000};
    CHECK(harness_run(&h, 1, 32, &p, PARAMS_XYNM).status == SIM_OK);
    CHECK(y[0] == 1000 && y[19] == 1019 && y[20] == 7 && y[31] == 7 && pages.calls[0] == 1);
    p.m = 2040;
    CHECK(harness_run(&h, 1, 32, &p, PARAMS_XYNM).status == SIM_OK);
    CHECK(y[0] == 7 && y[11] == 7 && y[12] == 2052 && !pages.calls[1] && pages.calls[2] == 1);
    CHECK(x[2047] == 7 && x[4096] == 1 && x[4105] == 1);
    CHECK(!sim_machine_fill(h.machine, to, &seven, 4, 4 * 1024 + 11));
    CHECK(!sim_machine_fill(h.machine, to - 4, &seven, 4, 1));
    CHECK(!sim_machine_fill(h.machine, to, &seven, 4, UINT64_MAX));
    CHECK(!sim_machine_fill(h.machine, c, &seven, 4, 1));
    CHECK(sim_machine_fill(h.machine, to, &one, 4, 4 * 1024 + 10) && x[2047] == 7);
    CHECK(harness_run(&h, 1, 32, &p, PARAMS_XYNM).status == SIM_OK);
    CHECK(y[0] == 1 && y[31] == 1 && x[2047] == 1 && !pages.calls[1] && pages.calls[2] == 1);
    CHECK(sim_machine_fill(h.machine, to, &seven, 4, 0));
    harness_free(&h);
}

/* Windows: shared, local, constants, generic addresses, and their bounds. */
static void test_windows(void) {
    static const struct {
        const char *name, *body;
        enum sim_status status;
        uint32_t want;
        const char *text;
    } rows[] = {
        {"shared by generic address",
         ".shared .b32 s[4]; mov.u64 %rd2, s; cvta.shared.u64 %rd3, %rd2; mov.u32 %r1, 77;"
         "st.b32 [%rd3+4], %r1; ld.shared.b32 %r2, [s+4]; st.global.u32 [%rd1], %r2;",
         SIM_OK, 77, ""},
        {"local by generic address",
         ".local .b32 l[2]; mov.u64 %rd2, l; cvta.local.u64 %rd3, %rd2; mov.u32 %r1, 78;"
         "st.local.b32 [l+4], %r1; ld.u32 %r2, [%rd3+4]; st.global.u32 [%rd1], %r2;",
         SIM_OK, 78, ""},
        {"isspacep",
         ".shared .b32 s[4]; mov.u64 %rd2, s; cvta.shared.u64 %rd3, %rd2;"
         "isspacep.shared %p1, %rd3; isspacep.global %p2, %rd3; isspacep.global %p3, %rd1;"
         "selp.u32 %r1, 1, 0, %p1; selp.u32 %r2, 2, 0, %p2; selp.u32 %r3, 4, 0, %p3;"
         "or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3; st.global.u32 [%rd1], %r1;",
         SIM_OK, 5, ""},
        {"bytes are extended",
         "mov.u32 %r1, 0x80f0; st.global.u32 [%rd1], %r1; ld.global.s8 %r2, [%rd1];"
         "ld.global.u8 %h1, [%rd1+1]; cvt.u32.u16 %r3, %h1; shl.b32 %r3, %r3, 16;"
         "and.b32 %r2, %r2, 0xffff; or.b32 %r2, %r2, %r3; st.global.u32 [%rd1], %r2;",
         SIM_OK, 0x0080fff0, ""},
        {"shared out of bounds", ".shared .b32 s[4]; ld.shared.b32 %r1, [s+16];", SIM_OUT_OF_BOUNDS,
         0, "reads 4 bytes at shared memory + 16, outside its 16 bytes"},
        {"shared address as a global one",
         ".shared .b32 s[4]; mov.u64 %rd2, s; cvta.shared.u64 %rd3, %rd2;"
         "ld.global.b32 %r1, [%rd3];",
         SIM_OUT_OF_BOUNDS, 0, "which is not global memory"},
        {"misaligned shared", ".shared .b32 s[4]; ld.shared.b32 %r1, [s+2];", SIM_MISALIGNED, 0,
         "not a multiple of 4"},
        {"parameters are read-only",
         "mov.u64 %rd2, p; cvta.param.u64 %rd2, %rd2; st.u32 [%rd2], 1;", SIM_WROTE_INPUT, 0,
         "constants or parameters"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        struct arena *a = arena_new(1u << 20);
        uint32_t out = 0;
        bool ok = harness_load_text(&h, harness_kernel(a, rows[i].body), "k");
        CHECKF(ok, "%s: %s", rows[i].name, h.err.text);
        uint64_t p = harness_buffer(&h, "out", &out, 4, false);
        if (ok) {
            struct sim_result r = harness_run(&h, 1, 32, &p, 8);
            CHECKF(r.status == rows[i].status, "%s: status %d %s", rows[i].name, r.status,
                   r.fault.text);
            CHECKF(out == rows[i].want, "%s: %#x", rows[i].name, out);
            CHECKF(strstr(r.fault.text, rows[i].text), "%s: %s", rows[i].name, r.fault.text);
        }
        harness_free(&h);
        arena_free(a);
    }
}

/* What nothing wrote: a register, shared and local memory, a half and a predicate of each thread.
 */
enum { NOISE_THREADS = 64, NOISE_WORDS = 5 * NOISE_THREADS * 2 };

static bool run_noise(uint64_t key, uint32_t *out) {
    struct arena *a = arena_new(1u << 20);
    struct harness h;
    struct sim_result r = {.status = SIM_UNSUPPORTED};
    str text = harness_kernel(
        a, ".shared .b32 s[64]; .local .b32 l[8];\n"
           "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 64, %r1;\n"
           "mul.wide.u32 %rd2, %r3, 20; add.s64 %rd2, %rd1, %rd2;\n"
           "mov.u32 %r4, s; shl.b32 %r5, %r1, 2; add.u32 %r4, %r4, %r5; ld.shared.u32 %r6, [%r4];\n"
           "ld.local.u32 %r7, [l+4]; cvt.u32.u16 %r5, %h1; selp.u32 %r4, 7, 9, %p1;\n"
           "st.global.u32 [%rd2], %r8; st.global.u32 [%rd2+4], %r6; st.global.u32 [%rd2+8], %r7;\n"
           "st.global.u32 [%rd2+12], %r5; st.global.u32 [%rd2+16], %r4;");
    if (harness_load_text(&h, text, "k")) {
        uint64_t p = harness_buffer(&h, "out", out, 4 * NOISE_WORDS, false);
        struct sim_launch l = {.program = h.program,
                               .grid = {2, 1, 1},
                               .block = {NOISE_THREADS, 1, 1},
                               .params = &p,
                               .params_size = sizeof p,
                               .noise = key};
        sim_run(h.machine, &l, &r);
    }
    CHECKF(r.status == SIM_OK, "%s%s", r.fault.text, h.err.text);
    harness_free(&h);
    arena_free(a);
    return r.status == SIM_OK;
}

static void test_noise(void) {
    static uint32_t first[NOISE_WORDS], again[NOISE_WORDS], other[NOISE_WORDS];
    if (!run_noise(1, first) || !run_noise(1, again) || !run_noise(2, other))
        return;
    CHECK(!memcmp(first, again, sizeof first));
    unsigned differ = 0, nan = 0, usual = 0, outside = 0, yes = 0;
    for (size_t i = 0; i < NOISE_WORDS; i++) {
        float f;
        memcpy(&f, &first[i], 4);
        differ += first[i] != other[i];
        if (i % 5 == 3)
            CHECK(first[i] <= 0xffff);
        if (i % 5 == 4)
            CHECK(first[i] == 7 || first[i] == 9);
        yes += i % 5 == 4 && first[i] == 7;
        if (i % 5 < 3) {
            CHECK(first[i] != 0);
            nan += f != f;
            usual += f > 0.1f && f < 10;
            outside += first[i] > 1u << 24 && f == f && (f > 1e6f || f < -1e6f);
        }
    }
    CHECKF(differ > NOISE_WORDS / 2, "%u", differ);
    CHECKF(nan > 8 && usual > 8 && outside > 8, "%u %u %u", nan, usual, outside);
    CHECKF(yes > 8 && yes < 120, "%u", yes);
}

/* The lanes whose value stayed at the first word of the buffer, over the numbers 0 … LAUNCHES - 1
 * of sim_launch.lanes; the last launch tells whether anything was drawn. */
enum { LAUNCHES = 64 };
static uint32_t winners(const char *body, bool checked, bool *drawn) {
    struct harness h;
    struct arena *a = arena_new(1u << 20);
    struct sim_findings found = {0};
    _Alignas(16) static uint32_t out[64];
    uint32_t seen = 0;
    bool ok = harness_load_text(&h, harness_kernel(a, body), "k");
    CHECKF(ok, "%s: %s", body, h.err.text);
    uint64_t p = harness_buffer(&h, "out", out, sizeof out, false);
    for (uint32_t lanes = 0; ok && lanes < LAUNCHES; lanes++) {
        struct sim_launch l = {.program = h.program,
                               .grid = {1, 1, 1},
                               .block = {32, 1, 1},
                               .dynamic_shared = 1024,
                               .params = &p,
                               .params_size = 8,
                               .checks = checked ? SIM_CHECK_ALL : 0,
                               .findings = &found,
                               .lanes = lanes};
        struct sim_result r;
        sim_run(h.machine, &l, &r);
        CHECKF(r.status == SIM_OK, "%s: %s", body, r.fault.text);
        CHECKF(found.n == 0, "%s: %s", body, found.list[0].text);
        CHECKF(lanes || (out[0] == 31 && !r.drawn), "%s: %u", body, out[0]);
        seen |= 1u << out[0] % 32;
        *drawn = r.drawn;
    }
    harness_free(&h);
    arena_free(a);
    return seen;
}

#define LANE "mov.u32 %r1, %laneid;"
#define TO_SHARED(store)                                                                           \
    LANE "mov.u32 %r2, 64;" store "bar.warp.sync -1; ld.shared.u32 %r3, [64]; st.global.u32 "      \
         "[%rd1], %r3;"

static void test_winner(void) {
    static const struct {
        const char *body;
        bool drawn;
    } rows[] = {
        {LANE "st.global.u32 [%rd1], %r1;", true},
        {LANE "st.u32 [%rd1], %r1;", true},
        {LANE "st.global.u8 [%rd1], %r1;", true},
        {LANE "st.global.v4.u32 [%rd1], {%r1, %r1, %r1, %r1};", true},
        {TO_SHARED("st.shared.u32 [%r2], %r1;"), true},
        {TO_SHARED("st.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1};"), true},
        {TO_SHARED("setp.ge.u32 %p1, %r1, 4; @%p1 st.shared.u32 [%r2], %r1;"), true},
        /* equal values, or places of their own in an order that does not ascend */
        {"mov.u32 %r1, 31; st.global.u32 [%rd1], %r1;", false},
        {LANE "xor.b32 %r2, %r1, 31; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd2, %rd2, %rd1;"
              "st.global.u32 [%rd2], %r1;",
         false},
    };
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        bool drawn = false, checked = i & 1;
        uint32_t seen = winners(rows[i / 2].body, checked, &drawn);
        int n = __builtin_popcount(seen);
        CHECKF(rows[i / 2].drawn ? n >= 16 : seen == 1u << 31, "%s: %d lanes won", rows[i / 2].body,
               n);
        CHECKF(drawn == rows[i / 2].drawn, "%s", rows[i / 2].body);
    }
}

static const struct tap_case cases[] = {
    {"sectors of known patterns", test_patterns},
    {"counters of a ragged launch", test_counters},
    {"out of bounds, exactly", test_faults},
    {"null, misaligned and read-only pointers", test_pointers},
    {"pages are made on first touch, once", test_lazy},
    {"what the host fills needs no page made", test_fill},
    {"shared, local, generic and parameter memory", test_windows},
    {"what nothing wrote is noise, by the launch's key", test_noise},
    {"which lane's store wins is drawn", test_winner},
};
TAP_CASES(cases)
