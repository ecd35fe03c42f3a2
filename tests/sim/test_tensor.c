/* Tensor-core instructions in kernels: operands from memory, results where they belong. What they
 * compute is tested in test_tile_*. */
#include "tap.h"

#include "harness.h"

static uint16_t half_of(int v) { /* small integers */
    if (v == 0)
        return 0;
    int sign = v < 0, m = sign ? -v : v, e = 31 - __builtin_clz((unsigned)m);
    return (uint16_t)(sign << 15 | (e + 15) << 10 | (m << (10 - e) & 0x3ff));
}

static int value(int i, int salt) {
    return (i * 7 + salt) % 11 - 5;
}

static struct sim_result run(const char *kernel, uint32_t block, float *c, size_t bytes, int m,
                             int n) {
    static uint16_t a[64 * 16], b[16 * 16];
    struct harness h;
    struct sim_result r = {.status = SIM_UNSUPPORTED};
    for (int i = 0; i < m * 16; i++)
        a[i] = half_of(value(i, 1));
    for (int i = 0; i < 16 * n; i++)
        b[i] = half_of(value(i, 5));
    if (harness_load(&h, "tensor.ptx", kernel)) {
        uint64_t p[3] = {harness_buffer(&h, "a", a, sizeof a, true),
                         harness_buffer(&h, "b", b, sizeof b, true),
                         harness_buffer(&h, "c", c, bytes, false)};
        r = harness_run(&h, 1, block, p, 24);
    }
    harness_free(&h);
    return r;
}

static void check_product(const float *c, int m, int n) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            int sum = 0;
            for (int k = 0; k < 16; k++)
                sum += value(i * 16 + k, 1) * value(k * n + j, 5);
            CHECKF(c[i * n + j] == (float)sum, "%d %d: %g, not %d", i, j, c[i * n + j], sum);
        }
}

static void test_products(void) {
    static const struct {
        const char *kernel;
        uint32_t block;
        int m, n;
    } rows[] = {{"mma_one", 32, 16, 8}, {"wmma_one", 32, 16, 16}, {"wgmma_one", 128, 64, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float c[64 * 16];
        struct sim_result r = run(rows[i].kernel, rows[i].block, c, sizeof c, rows[i].m, rows[i].n);
        CHECKF(r.status == SIM_OK, "%s: %s", rows[i].kernel, r.fault.text);
        check_product(c, rows[i].m, rows[i].n);
        CHECK(r.counters.tensor_flops == 2u * (unsigned)(rows[i].m * rows[i].n) * 16);
        CHECK(r.counters.warp_tensor == rows[i].block / 32);
    }
}

static void test_late(void) {
    float c[64 * 8] = {0};
    struct sim_result r = run("wgmma_late", 128, c, sizeof c, 64, 8);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    int old = 0;
    for (int i = 0; i < 64 * 8; i++)
        old += c[i] == -1;
    CHECKF(old == 64 * 8, "%d accumulators are as they were: nobody waited", old);
}

static void test_misuse(void) {
    float c[64 * 8];
    struct sim_result r = run("wgmma_one", 96, c, sizeof c, 64, 8);
    CHECKF(r.status == SIM_TRAP && strstr(r.fault.text, "group of four"), "%s", r.fault.text);
    struct harness h;
    uint32_t a[32] = {0};
    CHECK(harness_load(&h, "tensor.ptx", "mma_divergent"));
    uint64_t p[2] = {harness_buffer(&h, "a", a, sizeof a, true),
                     harness_buffer(&h, "c", c, sizeof c, false)};
    r = harness_run(&h, 1, 32, p, 16);
    CHECKF(r.status != SIM_OK && strstr(r.fault.text, "tensor.cu:"), "%d %s", r.status,
           r.fault.text);
    harness_free(&h);
}

static const struct tap_case cases[] = {
    {"mma, wmma and wgmma", test_products},
    {"wgmma without a wait", test_late},
    {"too few warps, too few lanes", test_misuse},
};
TAP_CASES(cases)
