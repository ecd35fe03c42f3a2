/* Blocks, warps and lanes that wait for each other: order, turns, clusters, deadlocks. */
#include "tap.h"

#include "harness.h"

struct run {
    uint32_t grid, block;
    unsigned threads;
    uint64_t budget, resident;
    bool cooperative;
};

static struct sim_result run(struct harness *h, const struct run *r, const void *params, size_t n) {
    struct sim_launch l = {.program = h->program,
                           .grid = {r->grid, 1, 1},
                           .block = {r->block, 1, 1},
                           .params = params,
                           .params_size = n,
                           .threads = r->threads ? r->threads : 1,
                           .max_warp_instrs = r->budget,
                           .resident_ctas = r->resident,
                           .cooperative = r->cooperative};
    struct sim_result out;
    sim_run(h->machine, &l, &out);
    return out;
}

#define N 5000
static uint32_t words[N];
static float floats[N];

static void test_histogram(void) {
    for (int i = 0; i < N; i++)
        words[i] = (uint32_t)i * 2654435761u >> 20;
    for (unsigned threads = 1; threads < 4; threads++) {
        struct harness h;
        uint32_t bins[32] = {0}, want[32] = {0};
        for (int i = 0; i < N; i++)
            want[words[i] & 31]++;
        CHECK(harness_load(&h, "grid.ptx", "histogram"));
        struct params_xyn p = {harness_buffer(&h, "x", words, sizeof words, true),
                               harness_buffer(&h, "bins", bins, sizeof bins, false), N, 0};
        struct sim_result r =
            run(&h, &(struct run){.grid = 12, .block = 96, .threads = threads}, &p, PARAMS_XYN);
        CHECKF(r.status == SIM_OK, "%s", r.fault.text);
        CHECK(memcmp(bins, want, sizeof bins) == 0);
        harness_free(&h);
    }
}

/* A sum of floats depends on its order; here it is the same for any number of threads. */
static void test_float_sum(void) {
    for (int i = 0; i < N; i++)
        floats[i] = (float)(i % 97) * 1.1e-3f + (float)(i % 3) * 1e4f;
    float first = 0;
    for (unsigned threads = 1; threads < 5; threads++) {
        struct harness h;
        float sum = 0;
        CHECK(harness_load(&h, "grid.ptx", "float_sum"));
        struct params_xyn p = {harness_buffer(&h, "x", floats, sizeof floats, true),
                               harness_buffer(&h, "sum", &sum, 4, false), N, 0};
        struct sim_result r =
            run(&h, &(struct run){.grid = 40, .block = 128, .threads = threads}, &p, PARAMS_XYN);
        CHECKF(r.status == SIM_OK, "%s", r.fault.text);
        CHECKF(threads == 1 || memcmp(&sum, &first, 4) == 0, "%g and %g", sum, first);
        first = sum;
        harness_free(&h);
    }
    float want = 0;
    for (int i = 0; i < N; i++)
        want += floats[i];
    CHECKF(first == want, "%g is not the sum in order, %g", first, want);
}

static void test_last_block(void) {
    struct harness h;
    static float x[1000], part[8], out;
    uint32_t count = 0;
    for (int i = 0; i < 1000; i++)
        x[i] = 1;
    CHECK(harness_load(&h, "grid.ptx", "last_block"));
    struct {
        uint64_t x, part, count, out;
        int32_t n;
    } p = {harness_buffer(&h, "x", x, sizeof x, true),
           harness_buffer(&h, "part", part, sizeof part, false),
           harness_buffer(&h, "count", &count, 4, false), harness_buffer(&h, "out", &out, 4, false),
           1000};
    struct sim_result r = run(&h, &(struct run){.grid = 8, .block = 128, .threads = 3}, &p, 36);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    CHECKF(out == 1000 && count == 0, "%g %u", out, count);
    harness_free(&h);
}

static void test_look_back(void) {
    struct harness h;
    enum { BLOCKS = 300 };
    static int state[BLOCKS], out[BLOCKS * 32];
    CHECK(harness_load(&h, "grid.ptx", "look_back"));
    struct params_xyn p = {harness_buffer(&h, "state", state, sizeof state, false),
                           harness_buffer(&h, "out", out, sizeof out, false), 0, 0};
    struct sim_result r = run(&h, &(struct run){.grid = BLOCKS, .block = 32, .threads = 2}, &p, 16);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    for (int b = 0; b < BLOCKS; b++)
        CHECKF(out[b * 32 + 31] == b * (b + 1) / 2, "block %d: %d", b, out[b * 32]);
    harness_free(&h);
}

/* With room for all blocks it ends; with less it waits for ever, and the message says why. */
static void test_look_ahead(void) {
    static int state[50], out[50 * 32];
    for (int room = 0; room < 2; room++) {
        struct harness h;
        memset(state, 0, sizeof state);
        CHECK(harness_load(&h, "grid.ptx", "look_ahead"));
        struct params_xyn p = {harness_buffer(&h, "state", state, sizeof state, false),
                               harness_buffer(&h, "out", out, sizeof out, false), 0, 0};
        struct sim_result r =
            run(&h, &(struct run){.grid = 50, .block = 32, .resident = room ? 50 : 20}, &p, 16);
        if (room) {
            CHECKF(r.status == SIM_OK && out[49 * 32] == 49, "%s", r.fault.text);
        } else {
            CHECK(r.status == SIM_NO_PROGRESS);
            CHECKF(strstr(r.fault.text,
                          "grid.cu:83: thread (0,0,0) of block (0,0,0) waits for ever "
                          "for memory to change at state + 4") &&
                       strstr(r.fault.text, "20 blocks wait like this, 30 have not started"),
                   "%s", r.fault.text);
        }
        harness_free(&h);
    }
}

static void test_stages(void) {
    struct harness h;
    enum { BLOCKS = 20, T = BLOCKS * 64 };
    static float a[T], b[T];
    uint32_t count = 0;
    CHECK(harness_load(&h, "grid.ptx", "stages"));
    uint64_t p[3] = {harness_buffer(&h, "count", &count, 4, false),
                     harness_buffer(&h, "a", a, sizeof a, false),
                     harness_buffer(&h, "b", b, sizeof b, false)};
    struct sim_result r = run(
        &h, &(struct run){.grid = BLOCKS, .block = 64, .threads = 2, .cooperative = true}, p, 24);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    bool right = true;
    for (int i = 0; i < T; i++)
        right &= a[i] == (float)(T - 1 - (i + 1) % T) + 1;
    CHECK(right && count == 2 * BLOCKS);
    r = run(&h, &(struct run){.grid = 20000, .block = 64, .cooperative = true}, p, 24);
    CHECKF(r.status == SIM_BAD_LAUNCH && strstr(r.fault.text, "at the same time"), "%s",
           r.fault.text);
    harness_free(&h);
}

static void test_lock(void) {
    struct harness h;
    int lock = 0, value = 0;
    CHECK(harness_load(&h, "grid.ptx", "locked"));
    uint64_t p[2] = {harness_buffer(&h, "lock", &lock, 4, false),
                     harness_buffer(&h, "value", &value, 4, false)};
    struct sim_result r = run(&h, &(struct run){.grid = 3, .block = 64, .threads = 2}, p, 16);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    CHECKF(value == 192 && lock == 0, "%d", value);
    harness_free(&h);
}

static void test_forgotten(void) {
    struct harness h;
    int flag[2] = {0}, out[32] = {0};
    CHECK(harness_load(&h, "grid.ptx", "forgotten"));
    uint64_t p[2] = {harness_buffer(&h, "flag", flag, 8, false),
                     harness_buffer(&h, "out", out, sizeof out, false)};
    struct sim_result r = run(&h, &(struct run){.grid = 3, .block = 64, .threads = 2}, p, 16);
    CHECK(r.status == SIM_NO_PROGRESS && r.fault.src_line == 126);
    CHECKF(strstr(r.fault.text, "grid.cu:126:") && strstr(r.fault.text, "at flag + 4: nobody"),
           "%s", r.fault.text);
    harness_free(&h);
}

static void test_named(void) {
    struct harness h;
    int out[256];
    CHECK(harness_load(&h, "grid.ptx", "named"));
    uint64_t p = harness_buffer(&h, "out", out, sizeof out, false);
    struct sim_result r = run(&h, &(struct run){.grid = 1, .block = 128}, &p, 8);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    for (int i = 0; i < 256; i++)
        CHECKF(out[i] == i / 64 * 100 + 63 - i % 64, "%d: %d", i, out[i]);
    harness_free(&h);
}

static void test_lanes(void) {
    struct harness h;
    uint32_t out[160];
    CHECK(harness_load(&h, "grid.ptx", "lanes"));
    uint64_t p = harness_buffer(&h, "out", out, sizeof out, false);
    struct sim_result r = run(&h, &(struct run){.grid = 1, .block = 32}, &p, 8);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    for (uint32_t i = 0; i < 32; i++) {
        CHECK(out[i] == 0xfu << i / 4 * 4);
        CHECK(out[32 + i] == 0); /* all lanes, and one */
        CHECK(out[64 + i] == (i % 2 ? 0xaaaaaaaa : 0x55555555));
        CHECK(out[96 + i] == (i == 0) && out[128 + i] == 1);
    }
    harness_free(&h);
}

static void test_cluster(void) {
    for (unsigned threads = 1; threads < 3; threads++) {
        struct harness h;
        static int x[12 * 32], out[12 * 32];
        for (int i = 0; i < 12 * 32; i++)
            x[i] = i;
        CHECK(harness_load(&h, "grid.ptx", "neighbours"));
        uint64_t p[2] = {harness_buffer(&h, "x", x, sizeof x, true),
                         harness_buffer(&h, "out", out, sizeof out, false)};
        struct sim_result r =
            run(&h, &(struct run){.grid = 12, .block = 32, .threads = threads}, p, 16);
        CHECKF(r.status == SIM_OK, "%s", r.fault.text);
        for (int i = 0; i < 12 * 32; i++) {
            int c = i / 128, t = i % 32, sum = 4 * (c * 128 + t) + 32 * 6;
            CHECKF(out[i] == sum * 10 + i / 32 % 4, "%d: %d", i, out[i]);
        }
        r = run(&h, &(struct run){.grid = 10, .block = 32}, p, 16);
        CHECKF(r.status == SIM_BAD_LAUNCH && strstr(r.fault.text, "clusters of (4,1,1)"), "%s",
               r.fault.text);
        harness_free(&h);
    }
}

static const struct tap_case cases[] = {
    {"a histogram in shared memory", test_histogram},
    {"float atomics in one order", test_float_sum},
    {"the last block adds up", test_last_block},
    {"decoupled look-back", test_look_back},
    {"waiting for blocks that may not have started", test_look_ahead},
    {"a barrier of the grid", test_stages},
    {"a lock within a warp", test_lock},
    {"a flag that nobody sets", test_forgotten},
    {"named barriers", test_named},
    {"match, elect, clocks", test_lanes},
    {"clusters and their shared memory", test_cluster},
};
TAP_CASES(cases)
