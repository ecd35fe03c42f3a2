/* Counters by line, bank conflicts as modelled, assertions. */
#include "tap.h"

#include "harness.h"

struct traffic {
    struct harness h;
    struct sim_result r;
    const char *source;
};

static bool run(struct traffic *t, const char *kernel, uint32_t block) {
    static _Alignas(16) float x[1024], y[1024];
    if (!harness_load(&t->h, "lines.ptx", kernel))
        return false;
    uint64_t p[2] = {harness_buffer(&t->h, "x", x, sizeof x, true),
                     harness_buffer(&t->h, "y", y, sizeof y, false)};
    struct sim_launch l = {.program = t->h.program,
                           .grid = {2, 1, 1},
                           .block = {block, 1, 1},
                           .params = p,
                           .params_size = 16,
                           .threads = 2,
                           .lines = t->h.arena};
    sim_run(t->h.machine, &l, &t->r);
    t->source = arena_cstr(t->h.arena, harness_text(t->h.arena, "sim/ptx", "lines.cu"));
    return t->r.status == SIM_OK;
}

static const struct sim_line *find(const struct traffic *t, const char *marker) {
    static const struct sim_line none;
    char text[64];
    snprintf(text, sizeof text, "// %s\n", marker);
    const char *at = strstr(t->source, text);
    uint32_t line = 1;
    for (const char *p = t->source; at && p < at; p++)
        line += *p == '\n';
    for (size_t i = 0; at && i < t->r.nlines; i++)
        if (t->r.lines[i].line == line && str_is(t->r.lines[i].file, "lines.cu"))
            return &t->r.lines[i];
    printf("# no line for %s\n", marker);
    return &none;
}

static void test_patterns(void) {
    static const struct {
        const char *marker;
        uint64_t requests, sectors, shared, wavefronts, conflicts;
    } rows[] = {
        /* of two blocks */
        {"global.row", 2, 8, 0, 0, 0},       {"global.column", 2, 64, 0, 0, 0},
        {"shared.row", 0, 0, 2, 2, 0},       {"shared.column", 0, 0, 2, 64, 62},
        {"shared.broadcast", 0, 0, 2, 2, 0}, {"shared.skewed", 0, 0, 2, 2, 0},
        {"shared.even", 0, 0, 2, 4, 2},
    };
    struct traffic t;
    CHECK(run(&t, "patterns", 32));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sim_line *l = find(&t, rows[i].marker);
        CHECKF(l->requests == rows[i].requests && l->sectors == rows[i].sectors,
               "%s: %llu requests, %llu sectors", rows[i].marker, (unsigned long long)l->requests,
               (unsigned long long)l->sectors);
        CHECKF(l->shared_requests == rows[i].shared && l->shared_wavefronts == rows[i].wavefronts &&
                   l->shared_conflicts == rows[i].conflicts,
               "%s: %llu requests, %llu wavefronts, %llu conflicts", rows[i].marker,
               (unsigned long long)l->shared_requests, (unsigned long long)l->shared_wavefronts,
               (unsigned long long)l->shared_conflicts);
    }
    uint64_t instrs = 0, conflicts = 0, flops = 0;
    for (size_t i = 0; i < t.r.nlines; i++) {
        instrs += t.r.lines[i].warp_instrs;
        conflicts += t.r.lines[i].shared_conflicts;
        flops += t.r.lines[i].flops;
    }
    CHECK(instrs == t.r.counters.warp_instrs && conflicts == t.r.counters.shared_conflicts);
    CHECK(flops == t.r.counters.flops && flops > 0);
    harness_free(&t.h);
}

static void test_wide(void) {
    struct traffic t;
    CHECK(run(&t, "wide", 32));
    const struct sim_line *row = find(&t, "wide.row"), *even = find(&t, "wide.even");
    CHECK(row->requests == 2 && row->sectors == 32 && row->bytes == 1024);
    CHECK(row->shared_wavefronts == 8 && row->shared_conflicts == 0); /* four quarters each */
    CHECKF(even->shared_wavefronts == 16 && even->shared_conflicts == 8, "%llu",
           (unsigned long long)even->shared_wavefronts);
    harness_free(&t.h);
}

static void test_assert(void) {
    struct harness h;
    int x[64];
    CHECK(harness_load(&h, "lines.ptx", "asserts"));
    uint64_t p = harness_buffer(&h, "x", x, sizeof x, false);
    struct sim_result r = harness_run(&h, 1, 40, &p, 8);
    CHECKF(r.status == SIM_OK, "%s", r.fault.text);
    r = harness_run(&h, 1, 64, &p, 8);
    CHECKF(r.status == SIM_TRAP &&
               strstr(r.fault.text, "thread (40,0,0) of block (0,0,0) failed an assertion"),
           "%s", r.fault.text);
    harness_free(&h);
}

static const struct tap_case cases[] = {
    {"sectors, wavefronts and conflicts by line", test_patterns},
    {"accesses of 16 bytes", test_wide},
    {"assertions", test_assert},
};
TAP_CASES(cases)
