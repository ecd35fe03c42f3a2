/* The core of refine: stages, patience, what is remembered, when it ends. */
#include "search/refine.h"
#include "tap.h"

static struct rounds start(enum workload w, enum profiling p) {
    struct rounds c = {.mem = arena_new(1 << 20),
                       .workload = w,
                       .profiling = p,
                       .stop_share = 0.98,
                       .best_s = INFINITY};
    rounds_start(&c, 1e-5, 1e-6);
    return c;
}

static void lose(struct rounds *c, size_t n) {
    for (size_t i = 0; i < n; i++)
        rounds_end(c, ROUND_NO_GAIN, 2e-5, S("slower"), S(""));
}

static void test_stages(void) {
    struct rounds c = start(WORKLOAD_CONTRACTION, PROFILING_DELAYED);
    CHECK(c.stage == STAGE_STRUCTURE && !c.stopped);
    lose(&c, 2);
    CHECK(c.stage == STAGE_STRUCTURE);
    rounds_end(&c, ROUND_FASTER, 8e-6, S("tiles"), S("")); /* patience starts again */
    lose(&c, 2);
    CHECK(c.stage == STAGE_STRUCTURE && c.best_s == 8e-6);
    lose(&c, 1);
    CHECK(c.stage == STAGE_DETAILS);
    lose(&c, 3);
    CHECK(c.stage == STAGE_PARAMETERS && !c.stopped);
    lose(&c, 2);
    CHECK(c.stopped && !strcmp(c.stopped, "plateau"));
    arena_free(c.mem);
}

/* At the limit there is nothing to gain; far below it the limit is not one. */
static void test_limit(void) {
    static const struct {
        double time_s;
        bool stops;
    } rows[] = {{1.1e-6, false}, {1.01e-6, true}, {1e-6, true}, {0.99e-6, true}, {0.5e-6, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rounds c = start(WORKLOAD_SCAN, PROFILING_DELAYED);
        rounds_end(&c, ROUND_FASTER, rows[i].time_s, S("x"), S(""));
        bool stopped = c.stopped && !strcmp(c.stopped, "limit");
        CHECKF(stopped == rows[i].stops, "%g s", rows[i].time_s);
        arena_free(c.mem);
    }
}

/* A stage has at most half of the candidates that are left when it begins; the last one the rest.
 */
static void test_budget(void) {
    static const struct {
        uint64_t left;
        enum stage stage;
    } rows[] = {{6, STAGE_STRUCTURE},
                {4, STAGE_STRUCTURE},
                {3, STAGE_DETAILS},
                {2, STAGE_DETAILS},
                {1, STAGE_PARAMETERS}};
    struct rounds c = start(WORKLOAD_CONTRACTION, PROFILING_DELAYED);
    size_t n;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rounds_begin(&c, rows[i].left);
        CHECKF(c.stage == rows[i].stage, "%d left", (int)rows[i].left);
        CHECK(rounds_share_left(&c, &n) == (i == 1 || i == 3 || i == 2));
        rounds_end(&c, ROUND_FASTER, c.best_s * 0.9, S("x"), S(""));
    }
    CHECK(!c.stopped);
    arena_free(c.mem);
    c = start(WORKLOAD_CONTRACTION, PROFILING_DELAYED);
    rounds_begin(&c, NO_BUDGET);
    CHECK(!rounds_share_left(&c, &n) && rounds_left(&c) == 3);
    arena_free(c.mem);
}

static void test_patience_by_workload(void) {
    struct rounds c = start(WORKLOAD_POINTWISE, PROFILING_DELAYED);
    lose(&c, 1);
    CHECK(c.stage == STAGE_DETAILS);
    arena_free(c.mem);
}

static void test_facts(void) {
    static const struct {
        enum profiling p;
        bool structure, details;
    } rows[] = {{PROFILING_DELAYED, false, true},
                {PROFILING_NOW, true, true},
                {PROFILING_NEVER, false, false}};
    for (size_t i = 0; i < 3; i++) {
        struct rounds c = start(WORKLOAD_POINTWISE, rows[i].p);
        CHECK(rounds_facts(&c) == rows[i].structure);
        lose(&c, 1);
        CHECK(rounds_facts(&c) == rows[i].details);
        arena_free(c.mem);
    }
}

static void test_gain(void) {
    struct rounds c = start(WORKLOAD_POINTWISE, PROFILING_NOW);
    CHECK(rounds_gain(&c, 9e-6) && !rounds_gain(&c, 9.99e-6) && !rounds_gain(&c, 1.1e-5));
    CHECK(!rounds_gain(&c, NAN) && !rounds_gain(&c, INFINITY));
    rounds_end(&c, ROUND_FASTER, 1.01e-6, S("all"), S(""));
    CHECK(c.stopped && !strcmp(c.stopped, "limit"));
    arena_free(c.mem);
}

static void test_done(void) {
    struct rounds c = start(WORKLOAD_CONTRACTION, PROFILING_DELAYED);
    rounds_end(&c, ROUND_DONE, INFINITY, S("it is all there"), S(""));
    CHECK(c.stage == STAGE_DETAILS && rounds_facts(&c));
    rounds_end(&c, ROUND_DONE, INFINITY, S("done"), S(""));
    rounds_end(&c, ROUND_DONE, INFINITY, S("done"), S(""));
    CHECK(c.stopped && !strcmp(c.stopped, "plateau"));
    arena_free(c.mem);
}

static void test_unanswered(void) {
    struct rounds c = start(WORKLOAD_CONTRACTION, PROFILING_NOW);
    for (int i = 0; i < 2; i++)
        rounds_end(&c, ROUND_UNANSWERED, INFINITY, S("-"), S(""));
    rounds_end(&c, ROUND_NO_GAIN, 1e-4, S("x"), S(""));
    for (int i = 0; i < 2; i++)
        rounds_end(&c, ROUND_UNANSWERED, INFINITY, S("-"), S(""));
    CHECK(!c.stopped);
    rounds_end(&c, ROUND_UNANSWERED, INFINITY, S("-"), S(""));
    CHECK(c.stopped && !strcmp(c.stopped, "no usable reply"));
    arena_free(c.mem);
}

static void test_memory(void) {
    struct rounds c = start(WORKLOAD_ATTENTION, PROFILING_NOW);
    struct buf b;
    buf_init(&b, 65536);
    rounds_end(&c, ROUND_FASTER, 8e-6, S("online softmax"), S(""));
    rounds_end(&c, ROUND_NO_GAIN, 9e-6, S("wider tiles"), S(""));
    rounds_end(&c, ROUND_REJECTED, INFINITY, S("no barrier"), S("race: threads race"));
    rounds_end(&c, ROUND_SEEN, INFINITY, S("again"), S(""));
    rounds_tried(&c, &b);
    CHECKF(str_is(buf_str(&b), "- structure: online softmax: 8 us instead of 10, kept\n"
                               "- structure: wider tiles: 9 us instead of 8, no gain; dropped\n"
                               "- structure: no barrier: race: threads race; dropped\n"
                               "- structure: again: the same source as an earlier one\n"),
           "%s", b.p);
    for (int i = 0; i < 40; i++)
        rounds_end(&c, ROUND_FASTER, c.best_s * 0.98, S("more"), S(""));
    buf_clear(&b);
    rounds_tried(&c, &b);
    CHECKF(str_starts(buf_str(&b), S("- (20 earlier ones)\n")), "%s", b.p);
    buf_release(&b);
    arena_free(c.mem);
}

static void test_ideas(void) {
    static const char long_idea[] =
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen twenty one two three four five six seven eight nine "
        "and_a_word_that_is_cut_in_the_middle";
    struct rounds c = start(WORKLOAD_ATTENTION, PROFILING_NOW);
    struct buf b;
    buf_init(&b, 65536);
    rounds_end(&c, ROUND_NO_GAIN, 9.96e-6, S("A short one."), S("k 9 us, dram-bound"));
    rounds_end(&c, ROUND_NO_GAIN, 2e-5, str_view(long_idea), S(""));
    rounds_tried(&c, &b);
    CHECKF(str_starts(buf_str(&b),
                      S("- structure: A short one: 9.96 us instead of 10, 0.4% faster, less than "
                        "the 0.5% asked for; dropped (k 9 us, dram-bound)\n")),
           "%s", b.p);
    CHECKF(strstr(b.p, "eight nine …: 20 us instead of 10, no gain; dropped\n"), "%s", b.p);
    CHECK(rounds_left(&c) == 1);
    buf_release(&b);
    arena_free(c.mem);
}

static const struct tap_case cases[] = {
    {"stages, and the plateau", test_stages},
    {"it ends at the limit, not beyond it", test_limit},
    {"patience by workload class", test_patience_by_workload},
    {"stages share a budget", test_budget},
    {"when facts are given", test_facts},
    {"what is a gain", test_gain},
    {"a stage that is done", test_done},
    {"nobody is asked for ever", test_unanswered},
    {"what was tried", test_memory},
    {"ideas are cut at a word", test_ideas},
};
TAP_CASES(cases)
