/* The checkers: each planted bug (ptx/bugs_*.cu) is found, on its line, with the other party's; the
 * same kernel without the bug is not reported at all. */
#include "tap.h"

#include "harness.h"

/* What a report is: of a finding the check, of a fault the status. */
static const struct {
    const char *name;
    enum sim_check check;
    enum sim_status status;
} kinds[] = {
    {"race", SIM_CHECK_RACE, SIM_OK},
    {"unwritten", SIM_CHECK_UNINITIALISED, SIM_OK},
    {"sync", SIM_CHECK_SYNC, SIM_OK},
    {"bounds", 0, SIM_OUT_OF_BOUNDS},
    {"misaligned", 0, SIM_MISALIGNED},
    {"input", 0, SIM_WROTE_INPUT},
    {"trap", 0, SIM_TRAP},
    {"stuck", 0, SIM_NO_PROGRESS},
    {"budget", 0, SIM_BUDGET},
};

struct expected {
    size_t kind;
    uint32_t here, other; /* lines; other 0: there is none */
};

static bool mark_kind(const char *line, size_t *kind) {
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t n = strlen(kinds[k].name);
        if (strncmp(line, kinds[k].name, n) == 0 && (line[n] == '\n' || line[n] == ' ')) {
            *kind = k;
            return true;
        }
    }
    return false;
}

/* The marks between the KERNELS line of the kernel before and its own. */
static bool marks_of(const char *source, const char *kernel, struct expected *out) {
    static const char bug[] = "// BUG: ", party[] = "// PARTY";
    char end[80];
    snprintf(end, sizeof end, "KERNELS(%s)\n", kernel);
    uint32_t line = 1;
    *out = (struct expected){0};
    bool found = false;
    for (const char *p = source; *p; line++) {
        const char *next = strchr(p, '\n');
        size_t n = next ? (size_t)(next - p) + 1 : strlen(p);
        const char *b = memmem(p, n, bug, sizeof bug - 1);
        if (b && mark_kind(b + sizeof bug - 1, &out->kind)) {
            out->here = line;
            found = true;
        }
        if (memmem(p, n, party, sizeof party - 1))
            out->other = line;
        if (memmem(p, n, end, strlen(end)))
            return found;
        if (memmem(p, n, "KERNELS(", 8)) {
            *out = (struct expected){0};
            found = false;
        }
        p += n;
    }
    return false;
}

struct planted {
    const char *kernel;
    uint32_t grid, block;
    const char *text; /* of the report */
    uint32_t cluster;
    bool fresh; /* nothing has written y */
    bool input; /* x may not be written */
    bool map;   /* the kernel takes a tensor map of x as well */
};

struct watched {
    struct sim_result r;
    struct sim_findings f;
};

static size_t fill_params(struct harness *h, const struct planted *b, void *x, void *y, size_t n,
                          uint8_t *params) {
    struct sim_buffer bx = {.name = S("x"), .host = x, .size = n, .read_only = b->input};
    struct sim_buffer by = {.name = S("y"), .host = y, .size = n, .undefined = true};
    uint64_t p[2] = {sim_machine_add(h->machine, &bx), sim_machine_add(h->machine, &by)};
    struct tile_map map = {.global = p[0],
                           .rank = 2,
                           .type = TILE_MAP_S32,
                           .extent = {16, 16},
                           .stride = {4, 64},
                           .box = {16, 4},
                           .step = {1, 1}};
    memcpy(params, p, sizeof p);
    if (!b->fresh)
        CHECK(sim_machine_fill(h->machine, p[1], "", 1, n));
    if (!b->map)
        return 16;
    CHECK(sim_tensormap(&map, params + TILE_MAP_BYTES, &h->err)); /* aligned to its size */
    return 2 * TILE_MAP_BYTES;
}

#define ORDERS 20 /* that every right kernel runs in */

static const struct watched *watch(const char *file, const char *kernel, const struct planted *b,
                                   uint32_t order) {
    static struct watched w;
    static _Alignas(128) int32_t x[1024], y[1024];
    struct harness h;
    _Alignas(128) uint8_t params[2 * TILE_MAP_BYTES];
    memset(&w, 0, sizeof w);
    memset(x, 1, sizeof x);
    memset(y, 0, sizeof y);
    if (harness_load(&h, file, kernel)) {
        size_t size = fill_params(&h, b, x, y, sizeof x, params);
        struct sim_launch l = {.program = h.program,
                               .grid = {b->grid, 1, 1},
                               .block = {b->block, 1, 1},
                               .cluster = {b->cluster, b->cluster != 0, b->cluster != 0},
                               .params = params,
                               .params_size = size,
                               .threads = 2,
                               .max_warp_instrs = 4u << 20,
                               .checks = SIM_CHECK_ALL,
                               .findings = &w.f,
                               .order = order};
        sim_run(h.machine, &l, &w.r);
    } else {
        w.r.status = SIM_UNSUPPORTED;
    }
    harness_free(&h);
    return &w;
}

/* Of a race either party may come second. */
static bool is_report(const struct sim_finding *f, const struct expected *e, const char *text) {
    bool lines = f->src_line == e->here && (!e->other || f->other_line == e->other);
    bool turned = e->other && f->src_line == e->other && f->other_line == e->here;
    return f->check == kinds[e->kind].check && strstr(f->text, text) && (lines || turned);
}

static bool is_fault(const struct sim_result *r, const struct expected *e, const char *text) {
    char other[32];
    snprintf(other, sizeof other, "line %u", e->other);
    return r->status == kinds[e->kind].status && r->fault.src_line == e->here &&
           strstr(r->fault.text, text) && (!e->other || strstr(r->fault.text, other));
}

static void look_for(const struct watched *w, const struct planted *b, const struct expected *e) {
    bool found = false;
    if (kinds[e->kind].status != SIM_OK) {
        CHECKF(is_fault(&w->r, e, b->text), "%s, line %u and %u: %d, line %u, %s", b->kernel,
               e->here, e->other, w->r.status, w->r.fault.src_line, w->r.fault.text);
        return;
    }
    CHECKF(w->r.status == SIM_OK, "%s: %d %s", b->kernel, w->r.status, w->r.fault.text);
    for (size_t j = 0; j < w->f.n; j++)
        found |= is_report(&w->f.list[j], e, b->text);
    CHECKF(found, "%s, lines %u and %u, of %zu findings: %s", b->kernel, e->here, e->other, w->f.n,
           w->f.list[0].text);
}

static void test_planted(const char *name, const struct planted *bugs, size_t n) {
    struct arena *a = arena_new(8u << 20);
    char cu[64], ptx[64];
    snprintf(cu, sizeof cu, "%s.cu", name);
    snprintf(ptx, sizeof ptx, "%s.ptx", name);
    const char *source = arena_cstr(a, harness_text(a, "sim/ptx", cu));
    for (size_t i = 0; i < n; i++) {
        const struct planted *b = &bugs[i];
        struct expected e;
        char right[64];
        CHECKF(marks_of(source, b->kernel, &e), "%s has no mark", b->kernel);
        look_for(watch(ptx, b->kernel, b, 0), b, &e);
        snprintf(right, sizeof right, "%s_right", b->kernel);
        for (uint32_t order = 0; order <= ORDERS; order++) {
            const struct watched *w = watch(ptx, right, b, order);
            CHECKF(w->r.status == SIM_OK, "%s: %d %s", right, w->r.status, w->r.fault.text);
            CHECKF(w->f.n == 0, "%s: %s", right, w->f.list[0].text);
        }
    }
    arena_free(a);
}

static void test_block(void) {
    static const struct planted bugs[] = {
        {"no_barrier", 1, 64, "no barrier orders them"},
        {"one_barrier", 1, 64, "no barrier orders them"},
        {"stage_reuse", 1, 64, "no barrier orders them"},
        {"no_syncwarp", 1, 32, "__syncwarp()"},
        {"volatile_lanes", 1, 32, "__syncwarp()"},
        {"lock_of_lanes", 1, 32, "__syncwarp()"},
        {"shuffle_orders", 1, 32, "__syncwarp()"},
        {"wrong_name", 1, 64, "no barrier orders them"},
        {"short_count", 1, 64, "no barrier orders them"},
        {"broadcast", 1, 64, "no barrier orders them"},
        {"plain_histogram", 1, 64, "no barrier orders them"},
        {"plain_reset", 1, 64, "no barrier orders them"},
        {"half_warp", 1, 64, "with 16 of the 32 lanes"},
        {"barrier_in_branch", 1, 64, "with 16 of the 32 lanes"},
        {"counts_differ", 1, 64, "a count of 32 threads"},
        {"odd_count", 1, 64, "a multiple of 32"},
        {"uneven_loop", 1, 64, "waits for ever"},
        {"crossed", 1, 64, "threads 32-63 wait at"},
        {"shuffle_from_idle", 1, 32, "shuffles from an absent lane: takes the value of lane 16"},
        {"shuffle_from_gone", 1, 32, "shuffles from an absent lane"},
        {"unnamed_lanes", 1, 32, "does not name it"},
        {"split_warp", 1, 32, "threads 16-31 wait at"},
        {"traps", 1, 32, "executed trap"},
        {"asserts", 1, 32, "failed an assertion"},
        {"endless", 1, 32, "does a loop never end"},
    };
    test_planted("bugs_block", bugs, sizeof bugs / sizeof *bugs);
}

static void test_grid(void) {
    static const struct planted bugs[] = {
        {"two_blocks", 2, 1, "nothing orders blocks"},
        {"no_flag", 2, 32, "nothing orders blocks"},
        {"overlap", 2, 64, "nothing orders blocks"},
        {"no_fence", 2, 32, "at y + 124"},
        {"narrow_fence", 2, 32, "nothing orders blocks"},
        {"lonely_fence", 2, 64, "nothing orders blocks"},
        {"late_data", 2, 1, "nothing orders blocks"},
        {"last_block", 2, 32, "nothing orders blocks"},
        {"plain_and_atomic", 2, 1, "nothing orders blocks"},
        {"plain_guess", 2, 1, "nothing orders blocks"},
        {"block_atomic", 2, 1, "of its own block alone"},
        {"in_block", 1, 64, "no barrier orders them"},
        {"stale_cache", 1, 64, "read-only path"},
        {"unlocked_early", 2, 1, "nothing orders blocks"},
        {"lock_kept", 2, 1, "memory to change at y + 0"},
        {"nobody_sets", 2, 1, "memory to change at y + 0"},
        {"peer_early", 2, 32, "no barrier orders them", .cluster = 2},
        {"relaxed_arrival", 2, 32, "no barrier orders them", .cluster = 2},
        {"peer_gone", 2, 32, "which may have ended", .cluster = 2},
        {"no_such_peer", 2, 32, "outside its", .cluster = 2},
        {"cluster_missed", 2, 32, "of block 1 of the cluster wait at", .cluster = 2},
    };
    test_planted("bugs_grid", bugs, sizeof bugs / sizeof *bugs);
}

static void test_memory(void) {
    static const struct planted bugs[] = {
        {"unwritten", 1, 64, "shared memory + 252, which nothing has written before"},
        {"unwritten_global", 1, 32, "reads 4 bytes at y + 0", .fresh = true},
        {"unwritten_local", 1, 32, "local memory + 0"},
        {"unzeroed_sum", 1, 32, "at y + 0", .fresh = true},
        {"output_as_input", 1, 32, "at y + 0", .fresh = true},
        {"partial_vector", 1, 64, "reads 16 bytes"},
        {"partial_matrix", 1, 32, "reads 16 bytes at shared memory + 112"},
        {"partial_tile", 1, 64, "reads 256 bytes"},
        {"shared_past_end", 1, 64, "shared memory + 256, outside its 256 bytes"},
        {"local_past_end", 1, 32, "local memory + 32, outside its 32 bytes"},
        {"past_end", 1, 64, "0 bytes past the end of y"},
        {"before_start", 1, 64, "4 bytes before the start of x"},
        {"vector_past_end", 1, 64, "writes 16 bytes at y + 4096"},
        {"null_pointer", 1, 32, "a null pointer"},
        {"misaligned_vector", 1, 32, "y + 8, which is not a multiple of 16"},
        {"misaligned_shared", 1, 32, "is not a multiple of 8"},
        {"misaligned_local", 1, 32, "is not a multiple of 4"},
        {"misaligned_atomic", 1, 32, "y + 4, which is not a multiple of 8"},
        {"writes_input", 1, 32, "x is an input", .input = true},
    };
    test_planted("bugs_memory", bugs, sizeof bugs / sizeof *bugs);
}

static void test_async(void) {
    static const struct planted bugs[] = {
        {"no_wait", 1, 64, "cp.async.wait_group"},
        {"no_commit", 1, 64, "cp.async.wait_group"},
        {"one_group_too_few", 1, 64, "cp.async.wait_group"},
        {"own_copies", 1, 64, "no barrier orders them"},
        {"copy_over_readers", 1, 64, "no barrier orders them"},
        {"copies_left", 1, 64, "waited for its cp.async"},
        {"no_proxy", 1, 64, "fence.proxy.async is missing"},
        {"store_overwritten", 1, 64, "before the copy is asked for, or after it is waited for"},
        {"read_back", 1, 64, "before the copy is asked for, or after it is waited for"},
        {"left_behind", 1, 64, "cp.async.bulk.wait_group"},
        {"early_copy", 1, 64, "writes 256 bytes at shared memory"},
        {"no_phase_wait", 1, 64, "shared memory"},
        {"wrong_parity", 1, 64, "shared memory"},
        {"stale_parity", 1, 64, "shared memory"},
        {"lane_without_wait", 1, 64, "__syncwarp()"},
        {"copy_without_arrival", 1, 64, "cp.async.wait_group"},
        {"wrong_stage", 1, 64, "writes 256 bytes at shared memory"},
        {"copy_over_copy", 1, 64, "a bulk copy wrote"},
        {"never_arrives", 1, 64, "1 of 2 arrivals"},
        {"too_many_bytes", 1, 64, "256 bytes of copies"},
        {"too_few_bytes", 1, 64, "128 bytes more than it was told to expect"},
        {"too_many_arrivals", 1, 64, "more arrivals than the mbarrier expects"},
        {"no_init", 1, 64, "no initialised mbarrier"},
        {"after_inval", 1, 64, "no initialised mbarrier"},
        {"used_before_init", 1, 64, "no barrier orders them"},
        {"init_twice", 1, 64, "mbarrier.inval has to come between"},
        {"over_barrier", 1, 64, "over the mbarrier"},
        {"no_copy", 1, 32, "still expects 256 bytes"},
        {"bulk_size", 1, 64, "16"},
        {"bulk_misaligned", 1, 64, "16"},
        {"bulk_past_end", 1, 64, "past the end of x"},
        {"tile_misaligned", 1, 64, "128", .map = true},
        {"tile_past_shared", 1, 64, "outside its", .map = true},
        {"tile_between", 1, 64, "a multiple of 16 bytes", .map = true},
        {"store_before_first", 1, 64, "a negative coordinate", .map = true},
        {"wrong_rank", 1, 64, "another rank", .map = true},
        {"not_a_map", 1, 64, "no tensor map", .map = true},
        {"large_box", 1, 64, "cannot be 512", .map = true},
        {"no_such_block", 2, 64, "a block that the cluster does not have", .cluster = 2},
    };
    test_planted("bugs_async", bugs, sizeof bugs / sizeof *bugs);
}

static void test_wgmma(void) {
    static const struct planted bugs[] = {
        {"sums_early", 1, 128, "which it has not waited for"},
        {"no_wgmma_commit", 1, 128, "which it has not waited for"},
        {"no_wgmma_fence", 1, 128, "before any wgmma.fence"},
        {"scaled_unfenced", 1, 128, "wgmma.fence is missing"},
        {"tile_overwritten", 1, 128, "before the wgmma is issued"},
        {"tile_no_barrier", 1, 128, "before the wgmma is issued"},
        {"tile_no_proxy", 1, 128, "fence.proxy.async is missing"},
        {"product_left", 1, 128, "waited for its wgmma"},
        {"own_descriptors", 1, 128, "with other descriptors"},
        {"swizzle_off", 1, 128, "base offset is 2, that of the address 1"},
        {"tile_past_end", 1, 128, "outside its"},
        {"part_of_group", 1, 128, "warp 3 of its group of four does not"},
        {"too_many_registers", 1, 512, "an SM has 65536"},
    };
    test_planted("bugs_wgmma", bugs, sizeof bugs / sizeof *bugs);
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

/* A reduction over a warp of which the block has twenty lanes. */
static void test_short_warp(void) {
    struct harness h;
    struct arena *a = arena_new(1u << 20);
    static struct sim_findings f;
    static int32_t out[32];
    struct sim_result r = {.status = SIM_UNSUPPORTED};
    str text = harness_kernel(a, "mov.u32 %r1, %tid.x;\n"
                                 "shfl.sync.down.b32 %r2, %r1, 16, 31, -1;\n"
                                 "shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;\n"
                                 "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd2, %rd1, %rd2;\n"
                                 "st.global.u32 [%rd2], %r3;");
    if (harness_load_text(&h, text, "k")) {
        uint64_t p = harness_buffer(&h, "out", out, sizeof out, false);
        struct sim_launch l = {.program = h.program,
                               .grid = {1, 1, 1},
                               .block = {20, 1, 1},
                               .params = &p,
                               .params_size = sizeof p,
                               .checks = SIM_CHECK_ALL,
                               .findings = &f};
        sim_run(h.machine, &l, &r);
    }
    CHECKF(r.status == SIM_OK, "%s%s", r.fault.text, h.err.text);
    CHECKF(f.n == 0, "%s", f.list[0].text);
    CHECK(out[0] == 1 && out[19] == 18);
    harness_free(&h);
    arena_free(a);
}

static const struct tap_case cases[] = {
    {"bugs among warps and lanes are found, with their lines", test_block},
    {"bugs among blocks", test_grid},
    {"bugs of memory", test_memory},
    {"bugs of copies and mbarriers", test_async},
    {"bugs of wgmma and setmaxnreg", test_wgmma},
    {"kernels that synchronise in other ways are not reported", test_quiet},
    {"lanes that a block does not have are not asked for", test_short_warp},
};
TAP_CASES(cases)
