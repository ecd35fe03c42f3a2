/* What the simulator computes against what an H200 computed from the same PTX: equal bits wherever
 * PTX leaves no freedom, a few units in the last place where it does. */
#include "golden/input.h"
#include "tap.h"

#include "harness.h"

static uint32_t input[3 * GOLDEN_N];
static uint32_t output[40 * GOLDEN_N];

static bool run_golden(const char *name, uint32_t words, str *want, struct harness *h) {
    char file[64];
    snprintf(file, sizeof file, "%s.ptx", name);
    if (!harness_load(h, file, name))
        return false;
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t i = 0; i < GOLDEN_N; i++)
            input[k * GOLDEN_N + i] = golden_word(i, k);
    memset(output, 0xa5, sizeof output);
    struct params_xyn p = {harness_buffer(h, "in", input, sizeof input, true),
                           harness_buffer(h, "out", output, words * GOLDEN_N * 4, false), GOLDEN_N,
                           0};
    struct sim_launch l = {.program = h->program,
                           .grid = {GOLDEN_N / 128, 1, 1},
                           .block = {128, 1, 1},
                           .dynamic_shared = 512,
                           .params = &p,
                           .params_size = PARAMS_XYN,
                           .threads = 2};
    struct sim_result r;
    sim_run(h->machine, &l, &r);
    CHECKF(r.status == SIM_OK, "%s: %s", name, r.fault.text);
    snprintf(file, sizeof file, "%s.bin", name);
    *want = harness_text(h->arena, "sim/golden", file);
    return r.status == SIM_OK && want->n == words * GOLDEN_N * 4;
}

static void check_bits(const char *name, uint32_t words) {
    struct harness h;
    str want;
    bool ok = run_golden(name, words, &want, &h);
    CHECK(ok);
    for (uint32_t i = 0; ok && i < GOLDEN_N; i++)
        for (uint32_t k = 0; k < words; k++) {
            uint32_t gpu;
            memcpy(&gpu, want.p + (i * words + k) * 4, 4);
            CHECKF(output[i * words + k] == gpu,
                   "%s word %u of (%08x, %08x, %08x): %08x, the GPU gave %08x", name, k, input[i],
                   input[GOLDEN_N + i], input[2 * GOLDEN_N + i], output[i * words + k], gpu);
        }
    harness_free(&h);
}

static void test_ints(void) {
    check_bits("ints", 40);
}
static void test_floats(void) {
    check_bits("floats", 36);
}
static void test_doubles(void) {
    check_bits("doubles", 28);
}
static void test_halves(void) {
    check_bits("halves", 24);
}
static void test_dfunctions(void) {
    check_bits("dfunctions", 16);
}
static void test_control(void) {
    check_bits("control", 16);
}

/* To record: golden/record.c with `small 32`. */
static void test_small(void) {
    struct harness h;
    str want;
    bool ran = run_golden("small", 32, &want, &h), recorded = want.n > 0;
    harness_free(&h);
    if (!recorded)
        SKIP("golden/small.bin has not been recorded on a GPU");
    CHECK(ran);
    check_bits("small", 32);
}

static int64_t ordered(uint32_t u) {
    return u & 0x80000000u ? -(int64_t)(u & 0x7fffffffu) : (int64_t)u;
}

/* Units in the last place, by what each function's approximations promise. lg2 near 1 has an
 * absolute bound, tanh.approx a relative one of 2^-11, gelu cancels. */
static void test_functions(void) {
    static const int64_t allow[24] = {2, 2, 2, 1, 1, 1, 4,    1, 1, 2, 1,  1,
                                      2, 0, 2, 2, 9, 2, 4096, 1, 1, 2, 13, 8};
    struct harness h;
    str want;
    bool ok = run_golden("functions", 24, &want, &h);
    CHECK(ok);
    for (uint32_t i = 0; ok && i < GOLDEN_N; i++)
        for (uint32_t k = 0; k < 24; k++) {
            uint32_t gpu, got = output[i * 24 + k];
            memcpy(&gpu, want.p + (i * 24 + k) * 4, 4);
            int64_t off = llabs(ordered(got) - ordered(gpu));
            CHECKF(off <= allow[k], "word %u of %08x: %08x, the GPU gave %08x", k, input[i], got,
                   gpu);
        }
    harness_free(&h);
}

static const struct tap_case cases[] = {
    {"integers: bits of an H200", test_ints},
    {"single precision: bits of an H200", test_floats},
    {"double precision: bits of an H200", test_doubles},
    {"f16 and bf16: bits of an H200", test_halves},
    {"double-precision functions with calls: bits of an H200", test_dfunctions},
    {"divergence, barriers, shuffles: bits of an H200", test_control},
    {"single-precision functions: close to an H200", test_functions},
    {"small formats: bits of an H200", test_small},
};
TAP_CASES(cases)
