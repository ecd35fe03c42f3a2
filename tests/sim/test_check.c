/* The checkers: each planted bug is found, on its line, with the other party's; the same kernel
 * without the bug is not reported at all. */
#include "tap.h"

#include "harness.h"

static uint32_t line_of(const char *source, const char *kernel, const char *which) {
    char marker[64];
    snprintf(marker, sizeof marker, "// %s.%s\n", kernel, which);
    const char *at = strstr(source, marker);
    uint32_t line = 1;
    for (const char *p = source; at && p < at; p++)
        line += *p == '\n';
    return at ? line : 0;
}

struct watched {
    struct sim_result r;
    struct sim_findings f;
};

static struct watched watch(const char *file, const char *kernel, uint32_t grid, uint32_t block) {
    struct harness h;
    static struct watched w;
    static _Alignas(128) int32_t x[256], y[256];
    memset(&w, 0, sizeof w);
    memset(x, 1, sizeof x);
    memset(y, 0, sizeof y);
    if (harness_load(&h, file, kernel)) {
        struct sim_buffer bx = {.name = S("x"), .host = x, .size = sizeof x};
        struct sim_buffer by = {.name = S("y"), .host = y, .size = sizeof y, .undefined = true};
        uint64_t p[2] = {sim_machine_add(h.machine, &bx), sim_machine_add(h.machine, &by)};
        if (!strstr(kernel, "unwritten_global"))
            sim_machine_written(h.machine, p[1], sizeof y);
        struct sim_launch l = {.program = h.program,
                               .grid = {grid, 1, 1},
                               .block = {block, 1, 1},
                               .params = p,
                               .params_size = 16,
                               .threads = 2,
                               .checks = SIM_CHECK_ALL,
                               .findings = &w.f};
        sim_run(h.machine, &l, &w.r);
    }
    harness_free(&h);
    return w;
}

static const struct {
    const char *kernel;
    uint32_t grid, block;
    enum sim_check check;
    const char *text;
} bugs[] = {
    {"no_barrier", 1, 64, SIM_CHECK_RACE, "no barrier orders them"},
    {"one_barrier", 1, 64, SIM_CHECK_RACE, "no barrier orders them"},
    {"no_syncwarp", 1, 32, SIM_CHECK_RACE, "__syncwarp()"},
    {"wrong_name", 1, 64, SIM_CHECK_RACE, "no barrier orders them"},
    {"two_blocks", 2, 1, SIM_CHECK_RACE, "nothing orders blocks"},
    {"no_fence", 2, 32, SIM_CHECK_RACE, "at y + 124"},
    {"lonely_fence", 2, 64, SIM_CHECK_RACE, "nothing orders blocks"},
    {"no_wait", 1, 64, SIM_CHECK_RACE, "cp.async.wait_group"},
    {"unwritten", 1, 64, SIM_CHECK_UNINITIALISED, "shared memory + 252, which nothing has written"},
    {"unwritten_global", 1, 32, SIM_CHECK_UNINITIALISED, "reads 4 bytes at y + 0"},
    {"unwritten_local", 1, 32, SIM_CHECK_UNINITIALISED, "local memory + 0"},
    {"half_warp", 1, 64, SIM_CHECK_SYNC, "with 16 of the 32 lanes"},
    {"no_proxy", 1, 64, SIM_CHECK_RACE, "fence.proxy.async is missing"},
    {"early_copy", 1, 64, SIM_CHECK_RACE, "writes 256 bytes at shared memory"},
    {"no_copy", 1, 32, SIM_CHECK_SYNC, "still expects 256 bytes"},
    {"left_behind", 1, 64, SIM_CHECK_SYNC, "cp.async.bulk.wait_group"},
};

static void test_bugs(void) {
    struct arena *a = arena_new(8u << 20);
    const char *source = arena_cstr(a, harness_text(a, "sim/ptx", "bugs.cu"));
    for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
        const char *k = bugs[i].kernel;
        struct watched w = watch("bugs.ptx", k, bugs[i].grid, bugs[i].block);
        CHECKF(w.r.status == SIM_OK, "%s: %d %s", k, w.r.status, w.r.fault.text);
        uint32_t here = line_of(source, k, "here"), other = line_of(source, k, "other");
        const struct sim_finding *found = NULL;
        for (size_t j = 0; j < w.f.n; j++) { /* of a race either party may come second */
            const struct sim_finding *f = &w.f.list[j];
            bool lines = (!here || f->src_line == here) && (!other || f->other_line == other);
            lines |= f->src_line == other && f->other_line == here;
            if (f->check == bugs[i].check && strstr(f->text, bugs[i].text) && lines)
                found = f;
        }
        CHECKF(found, "%s, lines %u and %u, of %zu findings: %s", k, here, other, w.f.n,
               w.f.list[0].text);
    }
    arena_free(a);
}

static void test_right(void) {
    for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_right", bugs[i].kernel);
        struct watched w = watch("bugs.ptx", name, bugs[i].grid, bugs[i].block);
        CHECKF(w.r.status == SIM_OK, "%s: %s", name, w.r.fault.text);
        CHECKF(w.f.n == 0, "%s: %s", name, w.f.list[0].text);
    }
}

/* Kernels of the other tests that wait for each other in every way there is. */
static void test_quiet(void) {
    static const struct {
        const char *file, *kernel;
        uint32_t grid, block;
        unsigned nbuffers;
        size_t bytes[5];
        int n;
        int nparams;
    } rows[] = {
        {"grid.ptx", "histogram", 4, 96, 2, {4000, 128}, 1000, 1},
        {"grid.ptx", "float_sum", 4, 96, 2, {4000, 4}, 300, 1},
        {"grid.ptx", "last_block", 8, 128, 4, {4000, 32, 4, 4}, 1000, 1},
        {"grid.ptx", "look_back", 20, 64, 2, {80, 5120}, 0, 0},
        {"grid.ptx", "stages", 8, 64, 3, {4, 2048, 2048}, 0, 0},
        {"grid.ptx", "named", 1, 128, 1, {1024}, 0, 0},
        {"grid.ptx", "neighbours", 8, 32, 2, {1024, 1024}, 0, 0},
        {"async.ptx", "pipeline", 1, 128, 2, {4096, 4096}, 1024, 1},
        {"async.ptx", "zero_fill", 1, 32, 2, {4096, 4096}, 70, 1},
        {"async.ptx", "rows", 1, 256, 2, {4096, 4096}, 1024, 2},
        {"async.ptx", "multicast", 8, 64, 2, {4096, 4096}, 0, 0},
        {"async.ptx", "specialised", 1, 64, 2, {4096, 4096}, 1024, 1},
        {"tensor.ptx", "mma_one", 1, 32, 3, {2048, 2048, 4096}, 0, 0},
        {"tensor.ptx", "wmma_one", 1, 32, 3, {2048, 2048, 4096}, 0, 0},
        {"tensor.ptx", "wgmma_one", 1, 128, 3, {2048, 2048, 4096}, 0, 0},
    };
    static _Alignas(128) uint8_t memory[5][8192];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        static struct sim_findings f;
        struct sim_result r = {.status = SIM_UNSUPPORTED};
        memset(memory, 0, sizeof memory);
        if (harness_load(&h, rows[i].file, rows[i].kernel)) {
            uint64_t p[8];
            unsigned n = rows[i].nbuffers;
            for (unsigned b = 0; b < n; b++)
                p[b] = harness_buffer(&h, "b", memory[b], rows[i].bytes[b], false);
            int32_t tail[2] = {rows[i].n, -1};
            memcpy(&p[n], tail, 8);
            struct sim_launch l = {.program = h.program,
                                   .grid = {rows[i].grid, 1, 1},
                                   .block = {rows[i].block, 1, 1},
                                   .params = p,
                                   .params_size = 8 * n + 4 * (size_t)rows[i].nparams,
                                   .checks = SIM_CHECK_ALL,
                                   .findings = &f};
            sim_run(h.machine, &l, &r);
        }
        CHECKF(r.status == SIM_OK, "%s: %d %s", rows[i].kernel, r.status, r.fault.text);
        CHECKF(f.n == 0, "%s: %s", rows[i].kernel, f.list[0].text);
        harness_free(&h);
    }
}

static const struct tap_case cases[] = {
    {"planted bugs are found, with their lines", test_bugs},
    {"the same kernels without them are not reported", test_right},
    {"kernels that synchronise in other ways are not reported", test_quiet},
};
TAP_CASES(cases)
