/* The core of evolve, exhaustively: it is a function of seed and outcomes, tries nothing twice,
 * keeps to its budget, ends for a stated reason, and beats chance. */
#include "agent/agent.h"
#include "search/evolve.h"
#include "tap.h"
#include <stdlib.h>

static struct arena *mem;
static struct catalogue *c;
static struct err err;
static struct agent expert;
static struct briefing brief;
static const struct ground pointwise = {.workload = {[WORKLOAD_POINTWISE] = true}};
#define W &pointwise

enum { MOST = 1000 };

struct history {
    struct strategy tried[MOST];
    double time_s[MOST];
    size_t n;
    size_t best_at; /* candidates until the optimum was found */
    const char *stopped;
};

/* A smooth cost with interactions; the optimum is unique. */
static double cost(const struct strategy *s) {
    double block = log2((double)strategy_get(c, s, "block")),
           items = log2((double)strategy_get(c, s, "items")),
           width = log2((double)strategy_get(c, s, "vector-width"));
    bool persistent = strategy_get(c, s, "persistent"), hint = strategy_get(c, s, "cache-hint");
    double t = 1 + 0.08 * fabs(block - 7) + 0.2 * fabs(width - 2) + 0.1 * fabs(items - 1) +
               0.05 * fabs(items + width - 3) + (persistent ? 0.07 : 0) + (hint ? 0 : 0.03);
    return t * 1e-5;
}

static double refused(const struct strategy *s) { /* a third is not accepted */
    return (strategy_get(c, s, "items") + strategy_get(c, s, "block") / 64) % 3 == 0 ? INFINITY
                                                                                     : cost(s);
}
static double none(const struct strategy *s) {
    (void)s;
    return INFINITY;
}
static double flat(const struct strategy *s) {
    (void)s;
    return 1e-5;
}

struct taken {
    struct strategy s[64];
    size_t n;
};
static void on_plan(void *ctx, const struct strategy *s, size_t n, str reason,
                    const struct err *e) {
    (void)reason, (void)e;
    struct taken *t = ctx;
    t->n = n;
    memcpy(t->s, s, n * sizeof *s);
}

static void strategy_of(const struct evolve *e, const struct proposal *p, const struct taken *plan,
                        struct strategy *out) {
    struct taken child;
    *out = p->strategy;
    if (p->from == FROM_PLAN) {
        *out = plan->s[p->plan];
    } else if (p->from == FROM_PARENTS) {
        CHECK(!strategy_equal(c, &p->x.strategy, &p->y.strategy) || !isfinite(p->y.time_s));
        expert.cross(expert.self, &brief, &p->x, &p->y, evolve_stream(e), on_plan, &child);
        *out = child.s[0];
    }
}

static struct evolve_options options(uint64_t seed) {
    return (struct evolve_options){.catalogue = c,
                                   .ground = pointwise,
                                   .seed = seed,
                                   .regime = REGIME_COUNT,
                                   .population = 12,
                                   .window = 8,
                                   .plateau = 1000,
                                   .limit_s = 1e-9,
                                   .stop_share = 0.98};
}

/* Whether anything was claimed for the turn. */
static void turn(struct evolve *e, const struct taken *plan) {
    struct proposal p;
    struct strategy s;
    size_t trial;
    if (!evolve_propose(e, plan->n, &p))
        return;
    strategy_of(e, &p, plan, &s);
    if (evolve_claim(e, 0, &s, &trial))
        evolve_submit(e, trial);
}

static size_t trial_with(const struct evolve *e, uint64_t ordinal) {
    size_t i = 0;
    while (!e->trials[i].submitted || e->trials[i].ordinal != ordinal)
        i++;
    return i;
}

static void settle_one(struct evolve *e, double (*f)(const struct strategy *), struct history *h) {
    size_t trial = trial_with(e, e->settled);
    h->tried[h->n] = e->trials[trial].strategy;
    h->time_s[h->n] = f(&h->tried[h->n]);
    h->n++;
    if (evolve_settle(e, trial, h->time_s[h->n - 1]))
        h->best_at = h->n;
}

static struct history run(const struct evolve_options *o, double (*f)(const struct strategy *)) {
    struct history h = {0};
    struct evolve e;
    struct taken plan = {0};
    evolve_init(&e, o);
    if (o->method != SEARCH_RANDOM)
        expert.plan(expert.self, &brief, o->population, rng_stream(o->seed, S("plan")), on_plan,
                    &plan);
    while (evolve_open(&e) || e.settled < e.submitted) {
        CHECK(e.submitted - e.settled <= o->window);
        if (evolve_open(&e))
            turn(&e, &plan);
        else
            settle_one(&e, f, &h);
    }
    h.stopped = e.stopped;
    for (size_t i = 0; i < h.n; i++)
        CHECK(isfinite(h.time_s[i]) ? !(h.time_s[i] < e.best_s) : true);
    evolve_release(&e);
    return h;
}

static void test_repeats(void) {
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct evolve_options o = options(seed);
        o.candidates = 100;
        struct history a = run(&o, refused), b = run(&o, refused);
        size_t same = 0;
        for (size_t i = 0; i < a.n; i++)
            same += strategy_equal(c, &a.tried[i], &b.tried[i]);
        CHECK(a.n == b.n && same == a.n && a.n == 100);
        o.seed += 100;
        struct history other = run(&o, refused);
        same = 0;
        for (size_t i = 0; i < a.n; i++)
            same += strategy_equal(c, &a.tried[i], &other.tried[i]);
        CHECKF(same < 60, "%zu", same);
    }
}

static void test_never_twice(void) {
    struct evolve_options o = options(3);
    struct history h = run(&o, refused);
    CHECK(h.n == strategy_space(c, W) && !strcmp(h.stopped, "space"));
    size_t doubles = 0;
    for (size_t i = 0; i < h.n; i++)
        for (size_t k = 0; k < i; k++)
            doubles += strategy_equal(c, &h.tried[i], &h.tried[k]);
    CHECKF(doubles == 0, "%zu", doubles);
}

static void test_budget(void) {
    for (uint64_t n = 1; n < 40; n++) {
        struct evolve_options o = options(n);
        o.candidates = n;
        struct history h = run(&o, cost);
        CHECKF(h.n == n && !strcmp(h.stopped, "budget"), "%zu of %d", h.n, (int)n);
    }
}

/* What is under way when it stops is still settled: up to a window more than was needed. */
static void test_ends(void) {
    struct evolve_options o = options(1);
    o.plateau = 3;
    struct history h = run(&o, flat);
    CHECKF(!strcmp(h.stopped, "plateau") && h.n == 4 * 12 + o.window - 1, "%s after %zu", h.stopped,
           h.n);
    o.limit_s = 0.99e-5;
    h = run(&o, flat);
    CHECKF(!strcmp(h.stopped, "limit") && h.n == o.window, "%s after %zu", h.stopped, h.n);
    o = options(1);
    o.plateau = 2;
    h = run(&o, none); /* nothing accepted: everything is tried */
    CHECKF(!strcmp(h.stopped, "space") && h.n == strategy_space(c, W), "%s after %zu", h.stopped,
           h.n);
    o.method = SEARCH_ONCE;
    h = run(&o, cost);
    CHECKF(!strcmp(h.stopped, "plan") && h.n >= 8 && h.n <= 12, "%s after %zu", h.stopped, h.n);
}

/* Turns for which nothing could be written end the search instead of turning for ever. */
static void test_nothing_written(void) {
    struct evolve_options o = options(1);
    struct evolve e;
    evolve_init(&e, &o);
    for (int i = 0; i < 12; i++) {
        CHECK(evolve_open(&e));
        evolve_pass(&e);
    }
    CHECK(!evolve_open(&e) && !strcmp(e.stopped, "space"));
    evolve_release(&e);
}

static size_t submit_random(struct evolve *e) {
    struct strategy s;
    size_t trial = SIZE_MAX;
    evolve_random(e, rng_sub(rng_stream(e->o.seed, S("test")), e->turn), &s);
    CHECK(evolve_claim(e, 0, &s, &trial));
    evolve_submit(e, trial);
    return trial;
}

static void test_ties(void) {
    struct evolve_options o = options(1);
    o.candidates = 30;
    o.window = 12;
    struct evolve e;
    size_t alive[13];
    evolve_init(&e, &o);
    for (size_t i = 0; i < 12; i++)
        CHECK(submit_random(&e) == i);
    CHECK(!evolve_open(&e));
    for (size_t i = 0; i < 12; i++)
        CHECK(evolve_settle(&e, i, i < 3 ? INFINITY : 2e-5) == (i == 3));
    CHECK(e.trials[e.best].ordinal == 3);
    CHECK(evolve_survivors(&e, alive) == 9 && alive[0] == 3 && alive[1] == 4);
    evolve_release(&e);
}

/* A strategy with the source of an earlier one gets its outcome, before or after that is known, and
 * is no candidate. */
static void test_twins(void) {
    struct evolve_options o = options(1);
    struct evolve e;
    size_t early, late;
    struct strategy s;
    evolve_init(&e, &o);
    size_t first = submit_random(&e);
    evolve_random(&e, rng_stream(9, S("a")), &s);
    CHECK(evolve_claim(&e, 0, &s, &early));
    evolve_same_source(&e, early, first);
    CHECK(!e.trials[early].settled && e.submitted == 1);
    evolve_random(&e, rng_stream(9, S("aligned")), &s);
    evolve_align(&e, first, &s);
    CHECK(evolve_settle(&e, first, 3e-5) && e.trials[early].settled);
    CHECK(strategy_equal(c, &e.trials[early].aligned, &s));
    CHECK(e.trials[early].time_s == 3e-5 && e.settled == 1);
    evolve_random(&e, rng_stream(9, S("b")), &s);
    CHECK(evolve_claim(&e, 1, &s, &late));
    evolve_same_source(&e, late, first);
    CHECK(e.trials[late].settled && e.trials[late].time_s == 3e-5);
    CHECK(strategy_equal(c, &e.trials[late].aligned, &e.trials[first].aligned));
    size_t alive[13];
    CHECK(evolve_survivors(&e, alive) == 1);
    evolve_release(&e);
}

/* Parents come to different strategies where there are such; a remark makes a strategy untried. */
static void test_unlike_parents(void) {
    struct evolve_options o = options(1);
    struct evolve e;
    struct parent x, y;
    size_t unlike = 0, trial;
    o.window = 3;
    evolve_init(&e, &o);
    for (size_t i = 0; i < 3; i++)
        CHECK(submit_random(&e) == i);
    for (size_t i = 0; i < 3; i++)
        evolve_settle(&e, i, 1e-5);
    evolve_align(&e, 1, &e.trials[0].strategy);
    for (uint64_t i = 0; i < 32; i++)
        unlike += evolve_unlike_parents(&e, rng_sub(rng_stream(2, S("p")), i), &x, &y) &&
                  !strategy_equal(c, &x.strategy, &y.strategy);
    CHECKF(unlike == 32, "%zu", unlike);
    struct strategy s = e.trials[0].strategy;
    s.remark = 5;
    CHECK(evolve_claim(&e, 0, &s, &trial) && strategy_equal(c, &e.trials[trial].strategy, &s));
    CHECK(evolve_claim(&e, 1, &s, &trial) && !strategy_equal(c, &e.trials[trial].strategy, &s));
    CHECK(e.trials[trial].strategy.remark == 0);
    evolve_release(&e);
}

/* Only some strategies exist: all of them are tried, and no others. */
static void test_only(void) {
    struct strategy only[40];
    size_t n = 0;
    for (uint64_t i = 0; n < 40; i++) {
        struct strategy s;
        strategy_random(c, W, rng_sub((struct rng){0}, i), &s);
        bool known = false;
        for (size_t k = 0; k < n; k++)
            known |= strategy_equal(c, &only[k], &s);
        if (!known)
            only[n++] = s;
    }
    qsort(only, n, sizeof *only, strategy_order);
    for (int method = SEARCH_EVOLVE; method <= SEARCH_RANDOM; method++) {
        struct evolve_options o = options(3);
        o.method = (enum search_method)method;
        o.only = only;
        o.nonly = n;
        struct history h = run(&o, cost);
        CHECKF(h.n == n && !strcmp(h.stopped, "space"), "%zu, %s", h.n, h.stopped);
        for (size_t i = 0; i < h.n; i++)
            CHECK(bsearch(&h.tried[i], only, n, sizeof *only, strategy_order));
    }
}

static double mean_need(enum search_method method) {
    double sum = 0;
    int runs = 20;
    for (int seed = 0; seed < runs; seed++) {
        struct evolve_options o = options((uint64_t)seed);
        o.method = method;
        o.candidates = method == SEARCH_RANDOM ? 0 : 160;
        o.limit_s = 1e-5; /* the optimum's: what comes after it says nothing */
        sum += (double)run(&o, cost).best_at / runs;
    }
    return sum;
}

/* Candidates until the optimum, against chance: drawing without replacement takes half the space.
 */
static void test_beats_chance(void) {
    double own = mean_need(SEARCH_EVOLVE), chance = mean_need(SEARCH_RANDOM);
    double third = ((double)strategy_space(c, W) + 1) / 3;
    printf("# optimum after %.1f candidates on average, %.1f by chance\n", own, chance);
    CHECK(own < chance / 4);
    CHECKF(chance > 0.6 * third && chance < 1.4 * third, "chance is not chance: %.1f, not %.1f",
           chance, third);
}

/* The fallback with this on top, as if the code had that. */
static size_t settle_with(struct evolve *e, const char *text, const char *aligned, double time_s) {
    struct strategy all, named;
    size_t trial = 0;
    strategy_fallback(c, W, &all);
    bool ok = strategy_parse(c, str_view(text), &named, &err) &&
              strategy_impose(c, W, &named, &all, &err) && evolve_claim(e, 0, &all, &trial);
    CHECKF(ok, "%s: %s", text, err.text);
    evolve_submit(e, trial);
    strategy_fallback(c, W, &all);
    ok = strategy_parse(c, str_view(aligned), &named, &err) &&
         strategy_impose(c, W, &named, &all, &err);
    CHECKF(ok, "%s: %s", aligned, err.text);
    evolve_align(e, trial, &all);
    evolve_settle(e, trial, time_s);
    return trial;
}

static void check_worth(const struct evolve *e, size_t trial, const char *want) {
    struct buf b;
    struct search_worth list[STRATEGY_MAX_DECISIONS];
    size_t n = evolve_worth(e, trial, list);
    buf_init(&b, 4096);
    evolve_put_worth(e->o.catalogue, &e->trials[trial].aligned, list, n, &b);
    CHECKF(str_is(buf_str(&b), want), "'%.*s', not '%s'", STR_ARG(buf_str(&b)), want);
    buf_release(&b);
}

/* Ratios of what was measured, of pairs whose code differs in one decision, and nothing else. */
static void test_worth(void) {
    struct evolve_options o = options(5);
    struct evolve e;
    evolve_init(&e, &o);
    size_t best = settle_with(&e, "vector-width=4 items=2", "vector-width=4 items=2", 1e-5);
    check_worth(&e, best, ""); /* it is alone */
    settle_with(&e, "block=64", "block=64", 9e-5);
    check_worth(&e, best, ""); /* more than one decision differs */
    settle_with(&e, "items=2", "items=2", INFINITY);
    check_worth(&e, best, ""); /* not accepted */
    settle_with(&e, "vector-width=4 items=4", "vector-width=4", 1.1e-5);
    check_worth(&e, best, "items=2 1.10x (1 pair)");
    settle_with(&e, "block=64 vector-width=4", "block=64 vector-width=4", 3e-5);
    check_worth(&e, best, "vector-width=4 3.00x (1 pair), items=2 1.10x (1 pair)");
    settle_with(&e, "block=512", "block=512", 8e-5);
    settle_with(&e, "block=512 vector-width=4", "block=512 vector-width=4", 2e-5);
    settle_with(&e, "block=128", "block=128", 2e-5);
    settle_with(&e, "block=128 vector-width=4", "block=128 vector-width=4", 2e-5);
    check_worth(&e, best,
                "vector-width=4 3.00x (1.00x to 4.00x in 3 pairs), items=2 1.10x (1 pair)");
    evolve_release(&e);
}

/* Precedents say what is faster, not how long it takes. */
static void test_expectation(void) {
    struct evolve_options o = options(3);
    struct precedent p = {.log_time = -0.5, .weight = 1};
    struct proposal from = {.from = FROM_CHANCE};
    struct evolve e;
    strategy_fallback(c, W, &p.strategy);
    o.precedents = &p;
    o.nprecedents = 1;
    evolve_init(&e, &o);
    size_t first = submit_random(&e);
    CHECK(evolve_propose(&e, 0, &from) && from.from == FROM_CREDIT && isinf(from.expected_s));
    evolve_settle(&e, first, INFINITY);
    CHECK(evolve_propose(&e, 0, &from) && from.from == FROM_CREDIT && isinf(from.expected_s));
    evolve_settle(&e, submit_random(&e), 6e-6);
    CHECK(evolve_propose(&e, 0, &from) && from.from == FROM_CREDIT);
    CHECKF(from.expected_s > 6e-7 && from.expected_s < 6e-5, "%g", from.expected_s);
    evolve_release(&e);
}

static const struct tap_case cases[] = {
    {"the same seed, the same run", test_repeats},
    {"nothing is tried twice, and all of a space is", test_never_twice},
    {"never over the budget", test_budget},
    {"plateau, limit, space", test_ends},
    {"nothing written", test_nothing_written},
    {"ties go to the lower ordinal", test_ties},
    {"twins share an outcome", test_twins},
    {"parents that differ, remarks that count", test_unlike_parents},
    {"only what exists is tried", test_only},
    {"the optimum in a quarter of the tries of chance", test_beats_chance},
    {"the worth of decisions", test_worth},
    {"no time is expected where none is known", test_expectation},
};

int main(void) {
    mem = arena_new(256u << 20);
    struct task *t;
    struct inst *in;
    if (!catalogue_load(NULL, mem, &c, &err) || !expert_new(NULL, &expert, &err) ||
        !task_parse(S("t"),
                    S("task t \"t\"\ndim N = 99999999\nin x[N] : f32 ~ normal(0,1)\n"
                      "out y[N] : f32\ny[i] = x[i]\n"),
                    mem, &t, &err) ||
        !task_bind(t, NULL, 0, mem, &in, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    brief = (struct briefing){.inst = in, .catalogue = c, .gpu = gpu_at(0)};
    features_of(in, &brief.features);
    brief.ground.workload[WORKLOAD_POINTWISE] = true;
    /* Compute-bound, so that the planner does not know the answer. */
    brief.roofline = (struct roofline){.limit_s = 1, .memory_bound = false};
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    expert.release(expert.self);
    arena_free(mem);
    return rc;
}
