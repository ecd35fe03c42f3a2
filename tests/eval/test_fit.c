/* Which launches a GPU can run at all, and what is said of those it cannot. */
#include "eval/trials.h"

#include "tap.h"

static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                           ".visible .entry k()\n{\n\tret;\n}\n"
                           ".visible .entry pairs()\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n"
                           "{\n\tret;\n}\n";

struct row {
    const char *gpu, *kernel;
    uint32_t grid[3], block, cluster;
    int registers;
    uint64_t shared;
    bool alone, map; /* alone: not cooperative */
    enum verdict verdict;
    const char *why;
};

#define OK(gpu, kernel, ...)                                                                       \
    { gpu, kernel, __VA_ARGS__, VERDICT_ACCEPTED, "" }

static const struct row rows[] = {
    /* two blocks of 1,024 threads on each of 132 SMs */
    OK("h200", "k", {264, 1, 1}, 1024, 1, 16, 0, false, false),
    {"h200",
     "k",
     {265, 1, 1},
     1024,
     1,
     16,
     0,
     false,
     false,
     VERDICT_LAUNCH_ERROR,
     "grid of 265 blocks, of which the NVIDIA H200 holds 264 at a time (2 on each of 132 SMs; "},
    OK("h200", "k", {3000, 1, 1}, 1024, 1, 16, 0, true, false),
    {"h200", "k", {11, 5, 5}, 1024, 1, 16, 0, false, false, VERDICT_LAUNCH_ERROR, "of 275 blocks"},
    {"h200",
     "k",
     {INT32_MAX, 65535, 65535},
     32,
     1,
     16,
     0,
     false,
     false,
     VERDICT_LAUNCH_ERROR,
     "holds 4224 at a time"},
    /* registers and shared memory count */
    OK("h200", "k", {132, 1, 1}, 1024, 1, 64, 0, false, false),
    {"h200",
     "k",
     {133, 1, 1},
     1024,
     1,
     64,
     0,
     false,
     false,
     VERDICT_LAUNCH_ERROR,
     "132 at a time (1 on each of 132 SMs; more are stopped by: registers)"},
    {"h200",
     "k",
     {133, 1, 1},
     32,
     1,
     16,
     200 << 10,
     false,
     false,
     VERDICT_LAUNCH_ERROR,
     "stopped by: shared memory"},
    OK("h200", "k", {4224, 1, 1}, 64, 1, 16, 0, false, false),
    OK("a100", "k", {216, 1, 1}, 1024, 1, 16, 0, false, false),
    {"a100",
     "k",
     {217, 1, 1},
     1024,
     1,
     16,
     0,
     false,
     false,
     VERDICT_LAUNCH_ERROR,
     "holds 216 at a time (2 on each of 108 SMs"},
    /* whole clusters: 16 of eight on 132 SMs */
    OK("h200", "k", {128, 1, 1}, 1024, 8, 64, 0, false, false),
    {"h200",
     "k",
     {136, 1, 1},
     1024,
     8,
     64,
     0,
     false,
     false,
     VERDICT_LAUNCH_ERROR,
     "holds 128 at a time (1 on each of 132 SMs, in whole clusters of 8"},
    OK("h200", "pairs", {132, 1, 1}, 1024, 1, 64, 0, false, false),
    {"h200",
     "pairs",
     {134, 1, 1},
     1024,
     1,
     64,
     0,
     false,
     false,
     VERDICT_LAUNCH_ERROR,
     "in whole clusters of 2"},
    /* what older GPUs do not have */
    OK("h200", "k", {40, 1, 1}, 256, 2, 16, 0, true, true),
    {"a100",
     "k",
     {40, 1, 1},
     256,
     2,
     16,
     0,
     true,
     false,
     VERDICT_UNSUPPORTED,
     "this GPU has no clusters (compute capability 9.0)"},
    {"rtx4090", "k", {40, 1, 1}, 256, 2, 16, 0, true, false, VERDICT_UNSUPPORTED, "no clusters"},
    {"a100", "pairs", {40, 1, 1}, 256, 1, 16, 0, true, false, VERDICT_UNSUPPORTED, "no clusters"},
    OK("a100", "k", {40, 1, 1}, 256, 1, 16, 0, true, false),
    {"a100", "k", {40, 1, 1}, 256, 1, 16, 0, true, true, VERDICT_UNSUPPORTED, "no tensor maps"},
    /* blocks that no SM has room for */
    {"h200",
     "k",
     {1, 1, 1},
     1024,
     1,
     65,
     0,
     true,
     false,
     VERDICT_LAUNCH_ERROR,
     "a block of 1024 threads with 65 registers each and 0 bytes of shared memory does not fit"},
    {"rtx4090",
     "k",
     {1, 1, 1},
     32,
     1,
     16,
     200 << 10,
     true,
     false,
     VERDICT_LAUNCH_ERROR,
     "does not fit an SM"},
};

static enum verdict verdict_of(const struct row *r, const struct ptx_module *m, struct err *why) {
    struct kernel_facts facts = {.name = str_view(r->kernel), .registers = r->registers};
    struct build build = {.kernels = &facts, .nkernels = 1};
    struct bound_launch launch = {.kernel = facts.name,
                                  .grid = {r->grid[0], r->grid[1], r->grid[2]},
                                  .block = {r->block, 1, 1},
                                  .cluster = {r->cluster, 1, 1},
                                  .cooperative = !r->alone,
                                  .shared = r->shared};
    struct bound_tensormap map = {0};
    struct bound_plan plan = {.launches = &launch, .nlaunches = 1, .maps = &map, .nmaps = r->map};
    return plan_fits_gpu(gpu_find(str_view(r->gpu)), &build, m, &plan, why);
}

static void launches(void) {
    struct arena *a = arena_new(1u << 20);
    struct ptx_module *m;
    struct err err = {0};
    bool parsed = ptx_parse(str_view(text), a, &m, &err);
    CHECKF(parsed, "%s", err.text);
    for (size_t i = 0; parsed && i < sizeof rows / sizeof *rows; i++) {
        struct err why = {0};
        enum verdict v = verdict_of(&rows[i], m, &why);
        CHECKF(v == rows[i].verdict, "row %zu: %s %s", i, verdict_name(v), why.text);
        CHECKF(strstr(why.text, rows[i].why), "row %zu: %s", i, why.text);
    }
    arena_free(a);
}

static const struct tap_case cases[] = {
    {"launches that fit a GPU and some that do not", launches},
};
TAP_CASES(cases)
