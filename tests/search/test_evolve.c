/* The core of evolve, exhaustively: it is a function of seed and outcomes, tries nothing twice,
 * keeps to its budget, ends for a stated reason, and beats chance. */
#include "agent/agent.h"
#include "search/evolve.h"
#include "tap.h"

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

static void propose(const struct evolve *e, uint64_t slot, const struct taken *plan,
                    struct strategy *out) {
    struct parent x, y;
    struct taken child;
    if (e->generation == 0 && slot < plan->n) {
        *out = plan->s[slot];
    } else if (evolve_parents(e, slot, &x, &y)) {
        CHECK(!strategy_equal(c, &x.strategy, &y.strategy) || !isfinite(y.time_s));
        expert.cross(expert.self, &brief, &x, &y, evolve_stream(e, slot), on_plan, &child);
        *out = child.s[0];
    } else {
        evolve_random(e, slot, out);
    }
}

static struct evolve_options options(uint64_t seed) {
    return (struct evolve_options){.catalogue = c,
                                   .ground = pointwise,
                                   .seed = seed,
                                   .population = 12,
                                   .plateau = 1000,
                                   .limit_s = 1e-9,
                                   .stop_share = 0.98};
}

static struct history run(const struct evolve_options *o, double (*f)(const struct strategy *)) {
    struct history h = {0};
    struct evolve e;
    struct taken plan = {0};
    size_t n;
    evolve_init(&e, o);
    while ((n = evolve_begin(&e)) > 0) {
        size_t first = h.n, trial[64];
        if (e.generation == 0)
            expert.plan(expert.self, &brief, n, rng_stream(o->seed, S("plan")), on_plan, &plan);
        for (size_t slot = 0; slot < n && !evolve_stopped(&e); slot++) {
            struct strategy s;
            propose(&e, slot, &plan, &s);
            if (!evolve_claim(&e, slot, 0, &s, &trial[h.n - first]))
                break;
            evolve_submit(&e, trial[h.n - first]);
            h.tried[h.n++] = e.trials[e.n - 1].strategy;
        }
        for (size_t i = first; i < h.n; i++) {
            h.time_s[i] = f(&h.tried[i]);
            if (evolve_settle(&e, trial[i - first], h.time_s[i]))
                h.best_at = i + 1;
        }
    }
    h.stopped = evolve_stopped(&e);
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

static void test_ends(void) {
    struct evolve_options o = options(1);
    o.plateau = 3;
    struct history h = run(&o, flat);
    CHECKF(!strcmp(h.stopped, "plateau") && h.n == 4 * 12, "%s after %zu", h.stopped, h.n);
    o.limit_s = 0.99e-5;
    h = run(&o, flat);
    CHECKF(!strcmp(h.stopped, "limit") && h.n == 12, "%s after %zu", h.stopped, h.n);
    o = options(1);
    o.plateau = 2;
    h = run(&o, none); /* nothing accepted: everything is tried */
    CHECKF(!strcmp(h.stopped, "space") && h.n == strategy_space(c, W), "%s after %zu", h.stopped,
           h.n);
}

/* A generation in which nothing could be written ends the search instead of turning for ever. */
static void test_nothing_written(void) {
    struct evolve_options o = options(1);
    struct evolve e;
    evolve_init(&e, &o);
    CHECK(evolve_begin(&e) == 12);
    CHECK(evolve_begin(&e) == 0 && !strcmp(evolve_stopped(&e), "space"));
    evolve_release(&e);
}

static void test_ties(void) {
    struct evolve_options o = options(1);
    o.candidates = 30;
    struct evolve e;
    evolve_init(&e, &o);
    size_t n = evolve_begin(&e), trial;
    for (size_t i = 0; i < n; i++) {
        struct strategy s;
        evolve_random(&e, i, &s);
        CHECK(evolve_claim(&e, i, 0, &s, &trial));
        evolve_submit(&e, trial);
    }
    for (size_t i = 0; i < n; i++)
        CHECK(evolve_settle(&e, i, i < 3 ? INFINITY : 2e-5) == (i == 3));
    CHECK(e.trials[e.best].ordinal == 3);
    struct parent x, y;
    CHECK(evolve_begin(&e) == 12 && evolve_parents(&e, 0, &x, &y));
    CHECK(strategy_equal(c, &x.strategy, &e.trials[3].strategy));
    CHECK(strategy_equal(c, &y.strategy, &e.trials[4].strategy));
    evolve_release(&e);
}

/* Candidates until the optimum, against drawing without replacement: (320 + 1) / 2 on average. */
static void test_beats_chance(void) {
    double sum = 0;
    int runs = 40;
    for (int seed = 0; seed < runs; seed++) {
        struct evolve_options o = options((uint64_t)seed);
        struct history h = run(&o, cost);
        sum += (double)h.best_at;
    }
    double mean = sum / runs, chance = ((double)strategy_space(c, W) + 1) / 2;
    printf("# optimum after %.1f candidates on average, %.1f by chance\n", mean, chance);
    CHECK(mean < chance / 2);
}

static void test_credit(void) {
    struct evolve_options o = options(5);
    o.candidates = 120;
    struct evolve e;
    struct buf b;
    buf_init(&b, 4096);
    evolve_init(&e, &o);
    evolve_credit(&e, &b);
    CHECK(b.n == 0);
    for (size_t n; (n = evolve_begin(&e)) > 0;) {
        size_t first = e.n;
        for (size_t i = 0; i < n; i++) {
            struct strategy s;
            size_t trial;
            evolve_random(&e, i, &s);
            CHECK(evolve_claim(&e, i, 0, &s, &trial));
            evolve_submit(&e, trial);
        }
        for (size_t i = first; i < e.n; i++)
            evolve_settle(&e, i, cost(&e.trials[i].strategy));
    }
    evolve_credit(&e, &b);
    CHECKF(str_find(buf_str(&b), S("vector-width=4 ")) < b.n, "%s", b.p);
    buf_release(&b);
    evolve_release(&e);
}

static const struct tap_case cases[] = {
    {"the same seed, the same run", test_repeats},
    {"nothing is tried twice, and all of a space is", test_never_twice},
    {"never over the budget", test_budget},
    {"plateau, limit, space", test_ends},
    {"nothing written", test_nothing_written},
    {"ties go to the lower ordinal", test_ties},
    {"the optimum in half the tries of chance", test_beats_chance},
    {"credit names the better values", test_credit},
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
