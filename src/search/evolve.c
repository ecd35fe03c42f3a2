#include "search/evolve.h"
#include <math.h>
#include <string.h>

#define ELITE         2
#define TOURNAMENT    3
#define MUTATIONS     16         /* of a child that was tried before */
#define RANDOM_TRIES  32         /* after those */
#define ENUMERATE_MAX (1u << 20) /* spaces up to this are searched for what is left */
#define GAIN          0.005      /* less than this share is no gain for the plateau */
#define CREDIT_SHOWN  1.02

/* Parts of a slot's stream. */
enum { PART_PARENTS = 1, PART_RANDOM, PART_CLAIM };

void evolve_init(struct evolve *e, const struct evolve_options *o) {
    *e = (struct evolve){.o = *o, .best_s = INFINITY, .gain_from_s = INFINITY};
}

void evolve_release(struct evolve *e) {
    mem_free(e->trials);
}

/* ---- generations ---- */

/* A generation without a single candidate: nothing near what was proposed can be written. */
static const char *why_end(const struct evolve *e) {
    if (e->generation > 0 && e->submitted == e->first)
        return "space";
    if (e->o.limit_s / e->best_s >= e->o.stop_share)
        return "limit";
    if (e->stale >= e->o.plateau)
        return "plateau";
    if (e->o.candidates && e->submitted >= e->o.candidates)
        return "budget";
    return NULL;
}

/* A generation in which nothing was accepted does not count as stale while nothing ever was. */
static void close_generation(struct evolve *e) {
    e->generation++;
    if (!isfinite(e->best_s))
        return;
    bool gained = !(e->best_s >= e->gain_from_s * (1 - GAIN));
    e->stale = gained ? 0 : e->stale + 1;
    if (gained)
        e->gain_from_s = e->best_s;
}

size_t evolve_begin(struct evolve *e) {
    BUG_IF(e->settled != e->submitted);
    if (e->begun && !e->stopped)
        close_generation(e);
    e->begun = true;
    if (!e->stopped)
        e->stopped = why_end(e);
    if (e->stopped)
        return 0;
    e->first = e->submitted;
    uint64_t left = e->o.candidates ? e->o.candidates - e->submitted : UINT64_MAX;
    return left < e->o.population ? (size_t)left : e->o.population;
}

const char *evolve_stopped(const struct evolve *e) {
    return e->stopped;
}

struct rng evolve_stream(const struct evolve *e, uint64_t slot) {
    return rng_sub(rng_sub(rng_stream(e->o.seed, S("evolve")), e->generation), slot);
}

static struct rng part_stream(const struct evolve *e, uint64_t slot, uint64_t part) {
    return rng_sub(evolve_stream(e, slot), part);
}

/* ---- selection ---- */

static bool better(const struct evolve_trial *x, const struct evolve_trial *y) {
    return x->time_s < y->time_s || (x->time_s == y->time_s && x->ordinal < y->ordinal);
}

/* The survivors: the best accepted trials, at most a population of them, best first. */
static size_t survivors(const struct evolve *e, size_t *out) {
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (!isfinite(e->trials[i].time_s))
            continue;
        size_t at = n;
        while (at > 0 && better(&e->trials[i], &e->trials[out[at - 1]]))
            at--;
        if (at == e->o.population)
            continue;
        size_t keep = n < e->o.population ? n : e->o.population - 1;
        memmove(&out[at + 1], &out[at], (keep - at) * sizeof *out);
        out[at] = i;
        n = keep + 1;
    }
    return n;
}

/* Ranks are drawn; the smallest wins. `except` is left out. */
static size_t tournament(struct rng r, uint64_t position, size_t n, size_t except) {
    size_t winner = n;
    for (uint64_t i = 0; i < TOURNAMENT; i++) {
        size_t rank = rng_below(r, position + i, except < n ? n - 1 : n);
        rank += rank >= except;
        winner = rank < winner ? rank : winner;
    }
    return winner;
}

static struct parent parent_of(const struct evolve_trial *t) {
    return (struct parent){t->aligned, t->time_s};
}

bool evolve_parents(const struct evolve *e, uint64_t slot, struct parent *x, struct parent *y) {
    size_t *alive = mem_alloc((e->o.population + 1) * sizeof *alive);
    size_t n = survivors(e, alive);
    struct rng r = part_stream(e, slot, PART_PARENTS);
    if (n >= ELITE) {
        size_t first = slot == 0 ? 0 : tournament(r, 0, n, n);
        size_t second = slot == 0 ? 1 : tournament(r, TOURNAMENT, n, first);
        *x = parent_of(&e->trials[alive[first]]);
        *y = parent_of(&e->trials[alive[second]]);
    } else if (n == 1) {
        *x = parent_of(&e->trials[alive[0]]);
        *y = (struct parent){.time_s = INFINITY};
        strategy_random(e->o.catalogue, &e->o.ground, r, &y->strategy);
    }
    mem_free(alive);
    return n > 0;
}

void evolve_random(const struct evolve *e, uint64_t slot, struct strategy *out) {
    strategy_random(e->o.catalogue, &e->o.ground, part_stream(e, slot, PART_RANDOM), out);
}

/* ---- claims ---- */

static bool tried(const struct evolve *e, const struct strategy *s) {
    for (size_t i = 0; i < e->n; i++)
        if (strategy_equal(e->o.catalogue, &e->trials[i].strategy, s))
            return true;
    return false;
}

static bool find_left(const struct evolve *e, struct rng r, struct strategy *out) {
    uint64_t space = strategy_space(e->o.catalogue, &e->o.ground);
    if (space > ENUMERATE_MAX)
        return false;
    uint64_t start = rng_below(r, 0, space);
    for (uint64_t i = 0; i < space; i++) {
        strategy_at(e->o.catalogue, &e->o.ground, (start + i) % space, out);
        if (!tried(e, out))
            return true;
    }
    return false;
}

/* Further and further away: the proposal, a walk of mutations from it, anywhere, what is left. */
static bool find_untried(const struct evolve *e, struct rng r, const struct strategy *proposal,
                         struct strategy *out) {
    *out = *proposal;
    for (uint64_t i = 0; i < MUTATIONS; i++) {
        if (!tried(e, out))
            return true;
        strategy_mutate(e->o.catalogue, &e->o.ground, out, rng_sub(r, i), out);
    }
    for (uint64_t i = 0; i < RANDOM_TRIES; i++) {
        if (!tried(e, out))
            return true;
        strategy_random(e->o.catalogue, &e->o.ground, rng_sub(r, MUTATIONS + i), out);
    }
    return !tried(e, out) || find_left(e, rng_sub(r, MUTATIONS + RANDOM_TRIES), out);
}

bool evolve_claim(struct evolve *e, uint64_t slot, uint64_t attempt,
                  const struct strategy *proposal, size_t *trial) {
    struct evolve_trial t = {.generation = e->generation, .slot = slot, .time_s = INFINITY};
    struct rng r = rng_sub(part_stream(e, slot, PART_CLAIM), attempt);
    if (!find_untried(e, r, proposal, &t.strategy)) {
        /* What the generation has so far is still evaluated. */
        e->stopped = "space";
        return false;
    }
    t.aligned = t.strategy;
    e->trials = mem_grow(e->trials, &e->cap, e->n + 1, sizeof *e->trials);
    *trial = e->n;
    e->trials[e->n++] = t;
    return true;
}

void evolve_align(struct evolve *e, size_t trial, const struct strategy *aligned) {
    e->trials[trial].aligned = *aligned;
}

void evolve_submit(struct evolve *e, size_t trial) {
    struct evolve_trial *t = &e->trials[trial];
    BUG_IF(t->submitted || (e->o.candidates && e->submitted >= e->o.candidates));
    t->submitted = true;
    t->ordinal = e->submitted++;
}

bool evolve_settle(struct evolve *e, size_t trial, double time_s) {
    struct evolve_trial *t = &e->trials[trial];
    BUG_IF(!t->submitted || t->settled || t->ordinal != e->settled);
    t->settled = true;
    t->time_s = time_s > 0 ? time_s : INFINITY;
    e->settled++;
    if (!(t->time_s < e->best_s))
        return false;
    e->best_s = t->time_s;
    e->best = trial;
    return true;
}

/* ---- credit ---- */

/* Mean logarithm of the accepted times, of all trials or of those with one value. */
static double mean_log(const struct evolve *e, size_t decision, int64_t value, bool all) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++) {
        const struct evolve_trial *t = &e->trials[i];
        if (!isfinite(t->time_s) || (!all && t->aligned.value[decision] != value))
            continue;
        sum += log(t->time_s);
        n++;
    }
    return n ? sum / (double)n : INFINITY;
}

void evolve_credit(const struct evolve *e, struct buf *out) {
    const struct catalogue *c = e->o.catalogue;
    double all = mean_log(e, 0, 0, true);
    const char *gap = "";
    for (size_t i = 0; i < c->n; i++) {
        const struct decision *d = &c->decisions[i];
        double gain = 0;
        int64_t value = 0;
        for (size_t v = 0; v < d->nvalues; v++) {
            double ratio = exp(all - mean_log(e, i, d->values[v], false));
            if (ratio > gain) {
                gain = ratio;
                value = d->values[v];
            }
        }
        if (!(gain >= CREDIT_SHOWN))
            continue;
        buf_printf(out, "%s%.*s=%lld %.2fx", gap, STR_ARG(d->name), (long long)value, gain);
        gap = ", ";
    }
}
