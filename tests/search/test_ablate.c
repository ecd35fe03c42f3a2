/* Replays and what is made of them, on tables whose times follow from the strategy: the same seed
 * is the same search, nothing outside the table is tried, evolution beats chance, history of a
 * similar task beats none, a source counts once. */
#include "base/file.h"
#include "search/ablate.h"
#include "tap.h"
#include <stdlib.h>

static struct arena *mem;
static struct catalogue *c;
static struct err err;
static struct agent expert;
static char *dir;

/* A unique optimum away from the planner's openings; `shift` makes similar tasks. */
static double cost(const struct strategy *s, double shift) {
    double block = log2((double)strategy_get(c, s, "block")),
           items = log2((double)strategy_get(c, s, "items")),
           width = log2((double)strategy_get(c, s, "vector-width"));
    bool persistent = strategy_get(c, s, "persistent"), hint = strategy_get(c, s, "cache-hint");
    return 1e-5 *
           (1 + 0.1 * fabs(block - 9) + 0.3 * fabs(width - 1) + 0.12 * fabs(items - 3) +
            0.1 * fabs(items + width - 4 - shift) + (persistent ? 0 : 0.2) + (hint ? 0.1 : 0));
}

static str text_of(const struct strategy *s) {
    struct buf b;
    buf_init(&b, 8192);
    strategy_text(c, s, &b);
    str t = arena_str(mem, buf_str(&b));
    buf_release(&b);
    return t;
}

/* All of the pointwise space; strategies that differ in fast-math alone have the same source. */
static void make_table(const char *name, double shift, struct table *out) {
    struct task *t;
    struct inst *in;
    struct briefing b;
    struct table_writer *w = NULL;
    str path = arena_printf(mem, "%s/%s", dir, name);
    str text = arena_printf(mem,
                            "task %s \"t\"\ndim N = 9999999\nin x[N] : f32 ~ normal(0,1)\n"
                            "out y[N] : f32\ny[i] = x[i] + %g\n",
                            name, shift);
    CHECK(task_parse(S("t"), text, mem, &t, &err) && task_bind(t, NULL, 0, mem, &in, &err));
    CHECK(briefing_make(in, c, gpu_at(0), &b, &err));
    uint64_t n = strategy_space(c, &b.ground);
    struct table_head h = {&b, c, "sim:h200", S("none"), true, (size_t)n, 1};
    CHECKF(table_open(path.p, &h, &w, &err), "%s", err.text);
    for (uint64_t i = 0; i < n; i++) {
        struct strategy s, plain;
        char hash[65];
        strategy_at(c, &b.ground, i, &s);
        plain = s;
        strategy_put(c, &plain, "fast-math", 0);
        digest_hex(strategy_hash(c, &plain), hash);
        struct table_line l = {text_of(&s),      text_of(&s),     true,
                               VERDICT_ACCEPTED, cost(&s, shift), hash};
        CHECK(table_add(w, &l, &err));
    }
    table_close(w);
    CHECKF(table_load(path.p, NULL, mem, out, &err), "%s", err.text);
}

static struct table tables[3];

static struct replay_options options(enum search_method method, uint64_t seed) {
    return (struct replay_options){.table = &tables[0],
                                   .agent = &expert,
                                   .seed = seed,
                                   .method = method,
                                   .roofline = true,
                                   .candidates = 100};
}

static void test_repeats(void) {
    struct replay a, b, other;
    struct replay_options o = options(SEARCH_EVOLVE, 3), p = options(SEARCH_EVOLVE, 4);
    replay_run(&o, mem, &a);
    replay_run(&o, mem, &b);
    replay_run(&p, mem, &other);
    size_t same = 0, same_other = 0;
    for (size_t i = 0; i < a.n; i++) {
        same += a.trials[i].row == b.trials[i].row;
        same_other += a.trials[i].row == other.trials[i].row;
    }
    CHECK(a.n == 100 && b.n == 100 && same == 100);
    CHECKF(same_other < 60, "%zu", same_other);
}

static void test_sources_once(void) {
    for (int method = SEARCH_EVOLVE; method <= SEARCH_RANDOM; method++) {
        struct replay r;
        struct replay_options o = options((enum search_method)method, 1);
        o.candidates = 400;
        replay_run(&o, mem, &r);
        size_t doubles = 0;
        for (size_t i = 0; i < r.n; i++)
            for (size_t k = 0; k < i; k++)
                doubles += tables[0].rows[r.trials[i].row].source ==
                           tables[0].rows[r.trials[k].row].source;
        CHECKF(doubles == 0 && r.n == 320, "%zu doubles, %zu candidates", doubles, r.n);
        for (size_t i = 1; i < r.n; i++)
            CHECK(r.trials[i].best_s <= r.trials[i - 1].best_s);
        CHECK(r.trials[r.n - 1].best_s == tables[0].best_s);
        CHECK(replay_need(&r, &tables[0], 0, 999) <= r.n);
    }
}

static void test_variants(void) {
    struct ablate x, again;
    struct ablate_options o = {
        .tables = tables, .n = 3, .agent = &expert, .seeds = 5, .candidates = 100, .near = 0.05};
    ablate_run(&o, mem, &x);
    ablate_run(&o, mem, &again);
    CHECK(x.n == 3 && x.searches == 3 + 3 * 5 * VARIANT_COUNT);
    for (size_t i = 0; i < x.n; i++) {
        const struct ablate_row *r = &x.rows[i];
        CHECKF(!(r->halfway < 0.5), "%g of the way", r->halfway);
        CHECK(r->sources == 320 && r->near > 0 && r->recalled == 2 && r->table->n == 640);
        for (int v = 0; v < VARIANT_COUNT; v++) {
            const struct ablate_cell *cell = &r->cell[v];
            CHECK(cell->median.low <= cell->median.value &&
                  cell->median.value <= cell->median.high);
            CHECK(cell->median.value == again.rows[i].cell[v].median.value);
            CHECK(cell->first >= cell->last && cell->last >= 1);
        }
    }
    double cold = x.hard[VARIANT_EVOLVE].value, warm = x.hard[VARIANT_HISTORY].value;
    printf("# %zu hard: %.2f of random search's need, %.2f with history\n", x.nhard, cold, warm);
    CHECK(x.nhard == 3 && x.hard[VARIANT_RANDOM].value == 1);
    CHECK(cold < 0.6 && warm < cold);
    CHECK(isnan(x.easy[VARIANT_EVOLVE].value));
}

static void test_names(void) {
    for (int v = 0; v < VARIANT_COUNT; v++)
        CHECK(strlen(variant_name((enum variant)v)) && strlen(variant_meaning((enum variant)v)));
}

static const struct tap_case cases[] = {
    {"the same seed, the same replay", test_repeats},
    {"each source once, all of them in the end", test_sources_once},
    {"variants against each other", test_variants},
    {"names of variants", test_names},
};

int main(void) {
    mem = arena_new((size_t)1 << 30);
    dir = mkdtemp(arena_cstr(mem, S("/tmp/ablate-XXXXXX")));
    if (!dir || !catalogue_load(NULL, mem, &c, &err) || !expert_new(NULL, &expert, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    make_table("a", 0, &tables[0]);
    make_table("b", 1, &tables[1]);
    make_table("c", -1, &tables[2]);
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    dir_remove_tree(dir, &err);
    expert.release(expert.self);
    arena_free(mem);
    return rc;
}
