/* Lattices: within the limit, legal, listed once each, closed, repeatable. */
#include "strategy/lattice.h"
#include "tap.h"

static struct arena *mem;
static struct catalogue *c;
static struct err err;

static struct lattice_options options(enum workload w, size_t limit, uint64_t seed) {
    struct lattice_options o = {
        .catalogue = c, .regime = REGIME_MEMORY, .limit = limit, .seed = seed};
    o.ground.workload[w] = true;
    o.ground.fact[FACT_ARCH] = 90;
    o.ground.fact[FACT_BYTES] = 4;
    o.ground.fact[FACT_ELEMENTS] = o.ground.fact[FACT_REDUCED] = 20;
    o.ground.fact[FACT_OUTPUTS] = 1;
    strategy_random(c, &o.ground, rng_stream(seed, S("first")), &o.first);
    return o;
}

static const enum workload workloads[] = {WORKLOAD_POINTWISE, WORKLOAD_NORMALISATION,
                                          WORKLOAD_CONTRACTION, WORKLOAD_SCAN, WORKLOAD_WINDOW};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

static size_t find(const struct lattice *l, const struct strategy *s) {
    size_t i = 0;
    while (i < l->n && !strategy_equal(c, &l->at[i], s))
        i++;
    return i;
}

static void test_limit(void) {
    static const size_t limits[] = {1, 7, 64, 300};
    for (size_t w = 0; w < WORKLOADS; w++)
        for (size_t i = 0; i < 4; i++) {
            struct lattice_options o = options(workloads[w], limits[i], 3);
            struct lattice l;
            lattice_make(&o, mem, &l);
            CHECKF(l.n > 0 && l.n <= limits[i], "%zu of %zu", l.n, limits[i]);
            CHECKF(limits[i] < 64 || l.n > limits[i] / 4, "%zu of %zu", l.n, limits[i]);
            CHECKF(find(&l, &o.first) < l.n, "the first guess is in it");
            for (size_t k = 0; k < l.n; k++)
                CHECK(find(&l, &l.at[k]) == k);
        }
}

static void test_legal(void) {
    struct lattice_options o = options(WORKLOAD_CONTRACTION, 300, 5);
    struct lattice l;
    lattice_make(&o, mem, &l);
    for (size_t k = 0; k < l.n; k++) {
        struct strategy s = l.at[k], on_whole = l.at[k];
        strategy_repair(&l.catalogue, &o.ground, &s);
        strategy_repair(c, &o.ground, &on_whole);
        CHECK(strategy_equal(c, &s, &l.at[k]) && strategy_equal(c, &on_whole, &l.at[k]));
    }
}

/* Children of members are members, but for fixed decisions that fell back to their default. */
static void test_closed(void) {
    struct lattice_options o = options(WORKLOAD_WINDOW, 300, 1);
    struct lattice l;
    lattice_make(&o, mem, &l);
    size_t inside = 0;
    for (size_t k = 0; k < 200; k++) {
        struct strategy s;
        struct rng r = rng_stream(k, S("child"));
        strategy_cross(&l.catalogue, &o.ground, &l.at[k % l.n], &l.at[k * 7 % l.n], r, &s);
        inside += find(&l, &s) < l.n;
    }
    CHECKF(inside == 200, "%zu of 200 children are rows", inside);
}

static void test_repeats(void) {
    struct lattice_options o = options(WORKLOAD_NORMALISATION, 100, 9);
    struct lattice a, b;
    lattice_make(&o, mem, &a);
    lattice_make(&o, mem, &b);
    CHECK(a.n == b.n && a.fixed == b.fixed);
    for (size_t i = 0; i < a.n; i++)
        CHECK(strategy_equal(c, &a.at[i], &b.at[i]));
}

static const struct tap_case cases[] = {
    {"within the limit, each once, the first guess among them", test_limit},
    {"legal, in the lattice and in the whole catalogue", test_legal},
    {"children are members", test_closed},
    {"the same seed, the same lattice", test_repeats},
};

int main(void) {
    mem = arena_new(512u << 20);
    if (!catalogue_load(NULL, mem, &c, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return rc;
}
