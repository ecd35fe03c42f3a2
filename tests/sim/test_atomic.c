/* Atomics: every operation and type, what they leave and what they return. */
#include "tap.h"

#include "harness.h"

static bool run(const char *kernel, uint32_t block, void *m, size_t bytes, void *old, size_t n) {
    struct harness h;
    bool ok = harness_load(&h, "atomics.ptx", kernel);
    if (ok) {
        uint64_t p[2] = {harness_buffer(&h, "m", m, bytes, false),
                         harness_buffer(&h, "old", old ? old : m, old ? n : bytes, false)};
        struct sim_result r = harness_run(&h, 1, block, p, old ? 16 : 8);
        ok = r.status == SIM_OK;
        if (!ok)
            printf("# %s: %s\n", kernel, r.fault.text);
    }
    harness_free(&h);
    return ok;
}

static void test_integers(void) {
    int32_t s[8] = {5, 5, -7, 12, 12, 12, 9, 7}, s_old[8];
    static const int32_t s_was[8] = {5, 5, -7, 12, 12, 12, 9, 7},
                         s_is[8] = {2, -3, -3, 12 & -3, 12 | -3, 12 ^ -3, -3, -3};
    CHECK(run("atom_s32", 1, s, sizeof s, s_old, sizeof s_old));
    CHECK(memcmp(s_old, s_was, sizeof s_was) == 0 && memcmp(s, s_is, sizeof s_is) == 0);

    uint32_t u[10] = {5, 5, 5, 3, 3, 3, 9, 8, 8, 7}, u_old[10];
    static const uint32_t u_is[10] = {0x80000006, 5,          0x80000001, 1, 0x80000003,
                                      0x80000002, 0x80000001, 8,          0, 5};
    CHECK(run("atom_u32", 1, u, sizeof u, u_old, sizeof u_old));
    CHECK(memcmp(u, u_is, sizeof u_is) == 0 && u_old[8] == 8 && u_old[9] == 7 && u_old[7] == 8);

    int64_t l[3] = {0, 5, -7}, l_old[3];
    CHECK(run("atom_s64", 1, l, sizeof l, l_old, sizeof l_old));
    CHECK(l[1] == -3 && l[2] == -3 && l_old[1] == 5 && l_old[2] == -7);

    uint64_t w[8] = {5, 5, 5, 3, 3, 3, 9, 7}, w_old[8], top = UINT64_C(1) << 63;
    CHECK(run("atom_u64", 1, w, sizeof w, w_old, sizeof w_old));
    CHECK(w[0] == top + 6 && w[1] == 5 && w[2] == (top | 1) && w[3] == 1 && w[4] == (top | 3) &&
          w[5] == (top | 2) && w[6] == (top | 1) && w[7] == (top | 1) && w_old[7] == 7);

    uint64_t q[2] = {5, 6}, q_old[2];
    CHECK(run("atom_wide", 1, q, sizeof q, q_old, sizeof q_old));
    CHECK(q[0] == 6 && q[1] == 5 && q_old[0] == 5 && q_old[1] == 6);

    uint16_t h[2] = {7, 7}, h_old[1];
    CHECK(run("atom_halfword", 1, h, sizeof h, h_old, sizeof h_old));
    CHECK(h[0] == 7 && h[1] == 9 && h_old[0] == 7);
}

static void test_floats(void) {
    struct harness h;
    _Alignas(16) float f[16] = {0.25f}, old[4] = {0};
    double d[2] = {0.2};
    uint32_t half[2] = {0x3c003c00}, brain[2] = {0x3f803f80};
    CHECK(harness_load(&h, "atomics.ptx", "atom_floats"));
    uint64_t p[5] = {harness_buffer(&h, "f", f, sizeof f, false),
                     harness_buffer(&h, "d", d, sizeof d, false),
                     harness_buffer(&h, "h", half, sizeof half, false),
                     harness_buffer(&h, "b", brain, sizeof brain, false),
                     harness_buffer(&h, "old", old, sizeof old, false)};
    struct sim_result r = harness_run(&h, 1, 32, p, 40);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    CHECK(f[0] == 0.25f + 48 && old[0] == 0.25f + 46.5f);
    CHECK(f[4] == 32 && f[5] == 64 && f[6] == 96 && f[7] == 128 && f[8] == 32 && f[9] == 64);
    CHECK(d[0] > 3.39 && d[0] < 3.41);
    CHECKF(half[0] == 0xd3e05020u, "%#x", half[0]); /* 33 and 1 - 64 */
    CHECKF(brain[0] == 0xc27c4204u, "%#x", brain[0]);
    harness_free(&h);
}

static void test_shared(void) {
    int out[66];
    CHECK(run("atom_shared", 64, out, sizeof out, NULL, 0));
    CHECK(out[0] == 63 && out[1] == 32);
    bool seen[64] = {false};
    for (int i = 0; i < 64; i++)
        seen[out[2 + i] & 63] = true;
    for (int i = 0; i < 64; i++)
        CHECK(seen[i]);
}

static void test_refused(void) {
    static const char *const bodies[] = {
        "atom.global.add.b32 %r1, [%rd1], 1;",      "atom.global.cas.f32 %f1, [%rd1], %f2, %f3;",
        "atom.local.add.u32 %r1, [%rd1], 1;",       "atom.global.inc.s32 %r1, [%rd1], 1;",
        "red.shared.add.v2.f32 [%r1], {%f1, %f2};", "red.global.add.u32 [%rd1];",
        "atom.global.add.u32 %rd1, [%rd1], 1;",     "red.global.u32 [%rd1], 1;",
        "red.global.add.banana.u32 [%rd1], 1;",     "red.global.min.f32 [%rd1], %f1;",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct harness h;
        struct arena *a = arena_new(1u << 20);
        CHECKF(!harness_load_text(&h, harness_kernel(a, bodies[i]), "k"), "%s", bodies[i]);
        harness_free(&h);
        arena_free(a);
    }
}

static void test_faults(void) {
    static const struct {
        const char *body;
        enum sim_status status;
    } rows[] = {
        {"red.global.add.u32 [%rd1+4], 1;", SIM_OUT_OF_BOUNDS},
        {"red.global.add.u32 [%rd1+2], 1;", SIM_OUT_OF_BOUNDS},
        {"add.s64 %rd1, %rd1, -2; red.global.add.u32 [%rd1], 1;", SIM_OUT_OF_BOUNDS},
        {"mov.u32 %r1, 64; atom.shared.add.u32 %r2, [%r1], 1;", SIM_OUT_OF_BOUNDS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        struct arena *a = arena_new(1u << 20);
        uint32_t out = 0;
        CHECK(harness_load_text(&h, harness_kernel(a, rows[i].body), "k"));
        uint64_t p = harness_buffer(&h, "out", &out, 4, false);
        struct sim_result r = harness_run(&h, 1, 32, &p, 8);
        CHECKF(r.status == rows[i].status, "%s: %d %s", rows[i].body, r.status, r.fault.text);
        harness_free(&h);
        arena_free(a);
    }
}

/* Lanes leave what their atomic gave them behind the first 32 words, which it counts in. */
#define TICKETS(atomic)                                                                            \
    "mov.u32 %r1, %laneid; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd1;" atomic            \
    "st.global.u32 [%rd2+128], %r3;"
#define IN_SHARED                                                                                  \
    "mov.u32 %r2, 64; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r2], 0; bar.warp.sync -1;"

static struct sim_result run_tickets(const char *body, uint32_t lanes, uint32_t *out) {
    struct harness h;
    struct arena *a = arena_new(1u << 20);
    struct sim_result r = {.status = SIM_UNSUPPORTED};
    memset(out, 0, 64 * sizeof *out);
    if (harness_load_text(&h, harness_kernel(a, body), "k")) {
        uint64_t p = harness_buffer(&h, "out", out, 64 * sizeof *out, false);
        struct sim_launch l = {.program = h.program,
                               .grid = {1, 1, 1},
                               .block = {32, 1, 1},
                               .dynamic_shared = 1024,
                               .params = &p,
                               .params_size = 8,
                               .lanes = lanes};
        sim_run(h.machine, &l, &r);
    }
    CHECKF(r.status == SIM_OK, "%s: %s%s", body, r.fault.text, h.err.text);
    harness_free(&h);
    arena_free(a);
    return r;
}

static void test_lane_order(void) {
    static const struct {
        const char *body;
        bool drawn;
    } rows[] = {
        {TICKETS("atom.global.add.u32 %r3, [%rd1], 1;"), true},
        {TICKETS(IN_SHARED "atom.shared.add.u32 %r3, [%r2], 1;"), true},
        {TICKETS(IN_SHARED "atom.shared.inc.u32 %r3, [%r2], 99;"), true},
        /* Places of their own, and sums that nobody reads while they grow. */
        {TICKETS("atom.global.add.u32 %r4, [%rd2], 1; add.u32 %r3, %r4, %r1;"), false},
        {TICKETS("red.global.add.u32 [%rd1], 1; mov.u32 %r3, %r1;"), false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t out[64], again[64], ascending = 0;
        for (uint32_t lanes = 0; lanes < 20; lanes++) {
            struct sim_result r = run_tickets(rows[i].body, lanes, out);
            uint64_t seen = 0, same = 0;
            for (uint32_t k = 0; k < 32; k++) {
                seen |= UINT64_C(1) << (out[32 + k] & 63);
                same += out[32 + k] == k;
            }
            run_tickets(rows[i].body, lanes, again);
            ascending += same == 32;
            CHECKF(seen == UINT32_MAX, "%s: %d", rows[i].body, (int)lanes);
            CHECKF(memcmp(out, again, sizeof out) == 0, "%s: %d", rows[i].body, (int)lanes);
            CHECKF(r.drawn == (rows[i].drawn && lanes), "%s: %d", rows[i].body, (int)lanes);
        }
        CHECKF(ascending == (rows[i].drawn ? 1 : 20), "%s: %u", rows[i].body, ascending);
    }
}

static const struct tap_case cases[] = {
    {"whose turn it is at one place is drawn", test_lane_order},
    {"integers of all widths", test_integers},
    {"floats, halves and vectors", test_floats},
    {"shared memory", test_shared},
    {"forms that PTX does not have", test_refused},
    {"outside the buffers", test_faults},
};
TAP_CASES(cases)
