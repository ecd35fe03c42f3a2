/* The search's own children: relatives of the best strategies, screened by credit before any of
 * them is written. */
#include "search/evolve.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OBSERVED_MOST 240 /* more are forgotten, the slowest first */
#define OBSERVED_LEFT 180
#define ELITE         3  /* whose neighbours are all looked at */
#define CHILDREN      24 /* of parents by tournament, every other one mutated */
#define STRANGERS     32
#define LEARN_LATER   3 /* … and of what was known then */
#define LEARN_SHARE   2 /* relevances are learnt again every so much of a population */

/* ---- what credit knows ---- */

static double slowest(const struct evolve *e) {
    double most = -INFINITY;
    for (size_t i = 0; i < e->nordered; i++)
        if (isfinite(e->trials[e->order[i]].time_s))
            most = fmax(most, log(e->trials[e->order[i]].time_s));
    return most;
}

/* All settled trials, a rejected one as a slow one. Returns how many. */
static size_t tell_credit(struct evolve *e) {
    double rejected = slowest(e) + CREDIT_REJECTED;
    for (; e->seen < e->nordered; e->seen++) {
        const struct evolve_trial *t = &e->trials[e->order[e->seen]];
        if (isfinite(t->time_s) || isfinite(rejected))
            credit_add(&e->credit, &t->aligned, isfinite(t->time_s) ? log(t->time_s) : rejected);
    }
    if (e->credit.n > OBSERVED_MOST) {
        credit_forget(&e->credit, OBSERVED_LEFT);
        e->learnt = e->learnt < OBSERVED_LEFT ? e->learnt : OBSERVED_LEFT;
    }
    if (e->credit.n >= e->learnt + e->o.population / LEARN_SHARE + e->learnt / LEARN_LATER) {
        credit_learn(&e->credit);
        e->learnt = e->credit.n;
    } else {
        credit_settle(&e->credit);
    }
    return e->credit.n;
}

/* Candidates under way are taken to come to what is expected of them, so that the next one is not
 * their neighbour. */
static void assume_pending(struct evolve *e) {
    double mean, sd;
    for (size_t i = 0; i < e->n; i++) {
        const struct evolve_trial *t = &e->trials[i];
        if (!t->submitted || t->settled)
            continue;
        credit_predict(&e->credit, &t->strategy, &mean, &sd);
        credit_add(&e->credit, &t->strategy, mean);
        credit_settle(&e->credit);
    }
}

/* ---- the brood ---- */

struct brood {
    struct evolve *e;
    double target; /* logarithm to improve on */
    struct strategy best;
    double most;
    bool found;
};

static void consider(struct brood *b, const struct strategy *s) {
    if (!evolve_exists(b->e, s) || evolve_tried(b->e, s))
        return;
    double gain = credit_improvement(&b->e->credit, s, b->target, b->found ? b->most : -1);
    if (b->found && !(gain > b->most))
        return;
    b->found = true;
    b->most = gain;
    b->best = *s;
}

static void consider_neighbours(struct brood *b, const struct strategy *of) {
    const struct evolve_options *o = &b->e->o;
    for (size_t d = 0; d < o->catalogue->n; d++) {
        const struct decision *decision = &o->catalogue->decisions[d];
        bool ours = of->value[d] != STRATEGY_UNSET && !decision->asked;
        for (size_t v = 0; ours && v < decision->nvalues; v++) {
            struct strategy s = *of;
            if (decision->values[v] == of->value[d] ||
                !strategy_allows(o->catalogue, &o->ground, of, d, decision->values[v]))
                continue;
            s.value[d] = decision->values[v];
            strategy_repair(o->catalogue, &o->ground, &s);
            consider(b, &s);
        }
    }
}

static void consider_children(struct brood *b, struct rng r) {
    const struct evolve_options *o = &b->e->o;
    for (uint64_t i = 0; i < CHILDREN; i++) {
        struct parent x, y;
        struct strategy child;
        struct rng own = rng_sub(r, i);
        if (!evolve_parents(b->e, rng_sub(own, 0), &x, &y))
            return;
        strategy_cross(o->catalogue, &o->ground, &x.strategy, &y.strategy, rng_sub(own, 1), &child);
        if (i % 2)
            strategy_mutate(o->catalogue, &o->ground, &child, rng_sub(own, 2), &child);
        consider(b, &child);
    }
}

static void consider_strangers(struct brood *b, struct rng r) {
    for (uint64_t i = 0; i < STRANGERS; i++) {
        struct strategy s;
        evolve_random(b->e, rng_sub(r, i), &s);
        consider(b, &s);
    }
}

bool brood_best(struct evolve *e, struct rng r, struct strategy *out, double *expected_s) {
    size_t known = tell_credit(e), *alive = mem_alloc((e->o.population + 1) * sizeof *alive);
    struct brood b = {.e = e, .target = isfinite(e->best_s) ? log(e->best_s) : 0};
    assume_pending(e);
    size_t n = evolve_survivors(e, alive);
    for (size_t i = 0; i < n && i < ELITE; i++)
        consider_neighbours(&b, &e->trials[alive[i]].aligned);
    consider_children(&b, rng_sub(r, 0));
    consider_strangers(&b, rng_sub(r, 1));
    mem_free(alive);
    double mean = 0, sd;
    if (b.found) {
        credit_predict(&e->credit, &b.best, &mean, &sd);
        *out = b.best;
        *expected_s = known ? exp(mean) : INFINITY; /* precedents' times are relative */
    }
    credit_drop(&e->credit, known);
    return b.found;
}
