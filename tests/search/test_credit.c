/* Credit: it predicts what it has seen, learns which decisions matter, follows a prior that is
 * right and lets go of one that is wrong. */
#include "search/credit.h"
#include "tap.h"

static struct arena *mem;
static struct catalogue *c;
static struct err err;
static const struct ground pointwise = {.workload = {[WORKLOAD_POINTWISE] = true}};

static double log_time(const struct strategy *s) {
    double width = log2((double)strategy_get(c, s, "vector-width")),
           items = log2((double)strategy_get(c, s, "items"));
    return 0.4 * fabs(width - 2) + 0.1 * fabs(items + width - 3);
}

static struct strategy random_one(uint64_t i) {
    struct strategy s;
    strategy_random(c, &pointwise, rng_sub(rng_stream(7, S("one")), i), &s);
    return s;
}

static void init(struct credit *m, const struct precedent *p, size_t n) {
    double relevance[STRATEGY_MAX_DECISIONS];
    for (size_t i = 0; i < c->n; i++)
        relevance[i] = 0.3;
    credit_init(m, c, &(struct ground){0}, relevance, p, n);
}

static void observe(struct credit *m, uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++) {
        struct strategy s = random_one(i);
        credit_add(m, &s, log_time(&s));
    }
}

/* Root mean square error on strategies it has not seen. */
static double error_of(const struct credit *m) {
    double sum = 0;
    for (uint64_t i = 1000; i < 1100; i++) {
        struct strategy s = random_one(i);
        double mean, sd;
        credit_predict(m, &s, &mean, &sd);
        sum += (mean - log_time(&s)) * (mean - log_time(&s));
    }
    return sqrt(sum / 100);
}

static double relevance_of(const struct credit *m, const char *name) {
    for (size_t i = 0; i < m->nused; i++)
        if (str_is(c->decisions[m->used[i]].name, name))
            return m->relevance[i];
    return NAN;
}

static void test_predicts(void) {
    struct credit m;
    init(&m, NULL, 0);
    observe(&m, 0, 40);
    credit_settle(&m);
    struct strategy seen = random_one(3), other = random_one(2000);
    double mean, sd, far, far_sd;
    credit_predict(&m, &seen, &mean, &sd);
    credit_predict(&m, &other, &far, &far_sd);
    CHECKF(fabs(mean - log_time(&seen)) < 0.02, "%g, not %g", mean, log_time(&seen));
    CHECKF(sd < far_sd, "%g, %g", sd, far_sd);
    double before = error_of(&m);
    observe(&m, 40, 80);
    credit_settle(&m);
    CHECKF(error_of(&m) < before, "%g, %g", error_of(&m), before);
    credit_release(&m);
}

static void test_learns(void) {
    struct credit m;
    init(&m, NULL, 0);
    observe(&m, 0, 60);
    credit_settle(&m);
    double before = error_of(&m);
    credit_learn(&m);
    CHECKF(error_of(&m) < before, "%g, %g", error_of(&m), before);
    CHECK(relevance_of(&m, "vector-width") > relevance_of(&m, "block"));
    CHECK(relevance_of(&m, "vector-width") > relevance_of(&m, "cache-hint"));
    credit_release(&m);
}

/* Dropping brings back what was, to the last bit; the same with what was forgotten. */
static void test_drop(void) {
    struct credit m;
    struct strategy s = random_one(500);
    double mean, sd, again, again_sd;
    init(&m, NULL, 0);
    observe(&m, 0, 30);
    credit_settle(&m);
    credit_predict(&m, &s, &mean, &sd);
    observe(&m, 30, 40);
    credit_settle(&m);
    credit_drop(&m, 30);
    credit_settle(&m);
    credit_predict(&m, &s, &again, &again_sd);
    CHECK(mean == again && sd == again_sd);
    credit_forget(&m, 10);
    CHECK(m.n == 10);
    double slowest = -INFINITY;
    for (size_t i = 0; i < m.n; i++)
        slowest = fmax(slowest, m.y[i]);
    size_t faster = 0;
    for (uint64_t i = 0; i < 30; i++) {
        struct strategy own = random_one(i);
        faster += log_time(&own) < slowest;
    }
    CHECKF(faster <= 10, "%zu", faster);
    credit_settle(&m);
    credit_predict(&m, &s, &again, &again_sd);
    CHECK(isfinite(again) && again_sd > 0);
    credit_release(&m);
}

static void make_precedents(struct precedent *p, size_t n, double sign) {
    for (size_t i = 0; i < n; i++) {
        p[i].strategy = random_one(3000 + i);
        p[i].log_time = sign * (log_time(&p[i].strategy) - 0.5);
        p[i].weight = 0.8;
    }
}

static void test_prior(void) {
    struct precedent right[80], wrong[80];
    struct credit cold, warm, misled;
    make_precedents(right, 80, 1);
    make_precedents(wrong, 80, -1);
    init(&cold, NULL, 0);
    init(&warm, right, 80);
    init(&misled, wrong, 80);
    observe(&cold, 0, 6);
    observe(&warm, 0, 6);
    credit_settle(&cold);
    credit_settle(&warm);
    CHECKF(error_of(&warm) < 0.8 * error_of(&cold), "%g, %g", error_of(&warm), error_of(&cold));
    observe(&cold, 6, 60);
    observe(&misled, 0, 60);
    credit_settle(&cold);
    credit_settle(&misled);
    CHECKF(misled.rho < 0.2, "%g", misled.rho);
    CHECKF(error_of(&misled) < 1.2 * error_of(&cold), "%g, %g", error_of(&misled), error_of(&cold));
    credit_release(&cold);
    credit_release(&warm);
    credit_release(&misled);
}

static void test_improvement(void) {
    struct credit m;
    init(&m, NULL, 0);
    observe(&m, 0, 40);
    credit_settle(&m);
    double most = 0;
    for (uint64_t i = 0; i < 50; i++) {
        struct strategy s = random_one(4000 + i);
        double exact = credit_improvement(&m, &s, 0.1, -1),
               cut = credit_improvement(&m, &s, 0.1, most);
        CHECK(exact >= 0 && (cut == exact || (cut <= most && exact <= most)));
        most = exact > most ? exact : most;
    }
    credit_release(&m);
}

/* Of two steps that go by the same decisions, the second is best with other values: what was seen
 * of strategies with values of their own for it tells of others. */
static const struct ground two = {.workload = {[WORKLOAD_POINTWISE] = true},
                                  .step = {WORKLOAD_POINTWISE, WORKLOAD_POINTWISE},
                                  .nsteps = 2};

static double log_time_of_two(const struct strategy *s) {
    double sum = 0;
    for (size_t step = 1; step <= 2; step++) {
        struct strategy own;
        strategy_of_step(c, &two, s, step, &own);
        double width = log2((double)strategy_get(c, &own, "vector-width"));
        sum += step == 1 ? 0.5 * width : 0.5 * (3 - width);
    }
    return sum;
}

static struct strategy random_of_two(uint64_t i) {
    struct rng r = rng_sub(rng_stream(8, S("two")), i);
    struct strategy s;
    strategy_random(c, &two, r, &s);
    for (size_t d = 0; d < c->n; d++)
        if (str_is(c->decisions[d].name, "vector-width"))
            strategy_put_own(c, &two, &s, 2, d,
                             c->decisions[d].values[rng_below(r, 99, c->decisions[d].nvalues)]);
    return s;
}

static void test_steps(void) {
    double relevance[STRATEGY_MAX_DECISIONS], wrong = 0, spread = 0;
    struct credit m;
    for (size_t i = 0; i < c->n; i++)
        relevance[i] = 0.3;
    credit_init(&m, c, &two, relevance, NULL, 0);
    for (uint64_t i = 0; i < 60; i++) {
        struct strategy s = random_of_two(i);
        credit_add(&m, &s, log_time_of_two(&s));
    }
    credit_settle(&m);
    credit_learn(&m);
    for (uint64_t i = 1000; i < 1100; i++) {
        struct strategy s = random_of_two(i);
        double mean, sd, is = log_time_of_two(&s);
        credit_predict(&m, &s, &mean, &sd);
        wrong += (mean - is) * (mean - is) / 100;
        spread += (is - 1.5) * (is - 1.5) / 100;
    }
    CHECKF(sqrt(wrong) < 0.35 * sqrt(spread), "%g of %g", sqrt(wrong), sqrt(spread));
    CHECK(relevance_of(&m, "vector-width") > relevance_of(&m, "block"));
    credit_release(&m);
}

static const struct tap_case cases[] = {
    {"predictions", test_predicts},
    {"which decisions matter", test_learns},
    {"observations dropped and forgotten", test_drop},
    {"a prior that is right, and one that is wrong", test_prior},
    {"values of single steps", test_steps},
    {"improvement is cut off where it does not matter", test_improvement},
};

int main(void) {
    mem = arena_new(256u << 20);
    if (!catalogue_load(NULL, mem, &c, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return rc;
}
