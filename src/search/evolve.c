#include "search/evolve.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOURNAMENT    3
#define MUTATIONS     16         /* of a child that was tried before */
#define RANDOM_TRIES  32         /* after those */
#define ENUMERATE_MAX (1u << 20) /* spaces up to this are searched for what is left */
#define GAIN          0.005      /* less than this share is no gain for the plateau */
#define HELPFUL       0.3        /* relevance to start from of decisions that help in the regime */
#define OTHER         0.1
#define CROSS_EVERY   4 /* every so many turns a child is asked of the crossover role */

/* Parts of a turn's stream. */
enum { PART_PARENTS = 1, PART_RANDOM, PART_CLAIM, PART_BROOD };

/* What to begin with, before anything is known. */
static double first_relevance(const struct evolve_options *o, size_t decision) {
    const struct decision *d = &o->catalogue->decisions[decision];
    bool ours = false;
    for (size_t w = 0; w < WORKLOAD_COUNT; w++)
        ours |= d->workload[w] && o->ground.workload[w];
    if (!ours)
        return 0;
    return o->regime == REGIME_COUNT || d->regime[o->regime] ? HELPFUL : OTHER;
}

void evolve_init(struct evolve *e, const struct evolve_options *o) {
    double relevance[STRATEGY_MAX_DECISIONS];
    *e = (struct evolve){.o = *o, .best_s = INFINITY, .gain_from_s = INFINITY};
    for (size_t i = 0; i < o->catalogue->n; i++)
        relevance[i] = first_relevance(o, i);
    credit_init(&e->credit, o->catalogue, relevance, o->precedents, o->nprecedents);
}

void evolve_release(struct evolve *e) {
    credit_release(&e->credit);
    mem_free(e->trials);
    mem_free(e->order);
}

/* ---- the end ---- */

static const char *why_end(const struct evolve *e) {
    if (e->passed >= e->o.population)
        return "space"; /* nothing near what was proposed can be written */
    if (e->o.limit_s / e->best_s >= e->o.stop_share)
        return "limit";
    if (e->stale >= e->o.plateau)
        return "plateau";
    if (e->o.candidates && e->submitted >= e->o.candidates)
        return "budget";
    return NULL;
}

static void look_for_end(struct evolve *e) {
    if (!e->stopped)
        e->stopped = why_end(e);
}

/* A generation in which nothing was accepted does not count as stale while nothing ever was. */
static void close_generation(struct evolve *e) {
    if (!isfinite(e->best_s))
        return;
    bool gained = !(e->best_s >= e->gain_from_s * (1 - GAIN));
    e->stale = gained ? 0 : e->stale + 1;
    if (gained)
        e->gain_from_s = e->best_s;
}

bool evolve_open(const struct evolve *e) {
    return !e->stopped && e->submitted - e->settled < e->o.window;
}

const char *evolve_stopped(const struct evolve *e) {
    return e->stopped;
}

uint64_t evolve_generation(const struct evolve *e) {
    return e->submitted / e->o.population;
}

struct rng evolve_stream(const struct evolve *e) {
    return rng_sub(rng_stream(e->o.seed, S("evolve")), e->turn);
}

static struct rng part_stream(const struct evolve *e, uint64_t part) {
    return rng_sub(evolve_stream(e), part);
}

/* ---- selection ---- */

static bool better(const struct evolve_trial *x, const struct evolve_trial *y) {
    return x->time_s < y->time_s || (x->time_s == y->time_s && x->ordinal < y->ordinal);
}

size_t evolve_survivors(const struct evolve *e, size_t *out) {
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (!e->trials[i].submitted || !isfinite(e->trials[i].time_s))
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
    return (struct parent){t->aligned, t->time_s, t->candidate};
}

/* Two different ones by tournament. One that is alone gets a stranger. */
bool evolve_parents(const struct evolve *e, struct rng r, struct parent *x, struct parent *y) {
    size_t *alive = mem_alloc((e->o.population + 1) * sizeof *alive);
    size_t n = evolve_survivors(e, alive);
    if (n >= 2) {
        size_t first = tournament(r, 0, n, n), second = tournament(r, TOURNAMENT, n, first);
        *x = parent_of(&e->trials[alive[first]]);
        *y = parent_of(&e->trials[alive[second]]);
    } else if (n == 1) {
        *x = parent_of(&e->trials[alive[0]]);
        *y = (struct parent){.time_s = INFINITY};
        evolve_random(e, r, &y->strategy);
    }
    mem_free(alive);
    return n > 0;
}

bool evolve_unlike_parents(const struct evolve *e, struct rng r, struct parent *x,
                           struct parent *y) {
    size_t *alive, n, unlike = 0;
    if (!evolve_parents(e, r, x, y))
        return false;
    if (!strategy_equal(e->o.catalogue, &x->strategy, &y->strategy))
        return true;
    alive = mem_alloc((e->o.population + 1) * sizeof *alive);
    n = evolve_survivors(e, alive);
    for (size_t i = 0; i < n; i++)
        if (!strategy_equal(e->o.catalogue, &x->strategy, &e->trials[alive[i]].aligned))
            alive[unlike++] = alive[i];
    if (unlike)
        *y = parent_of(&e->trials[alive[tournament(rng_sub(r, 0), 0, unlike, unlike)]]);
    mem_free(alive);
    return true;
}

void evolve_random(const struct evolve *e, struct rng r, struct strategy *out) {
    if (e->o.only)
        *out = e->o.only[rng_below(r, 0, e->o.nonly)];
    else
        strategy_random(e->o.catalogue, &e->o.ground, r, out);
}

/* ---- proposals ---- */

static void propose_evolved(struct evolve *e, struct proposal *out) {
    bool informed = !e->o.uncredited && (isfinite(e->best_s) || e->o.nprecedents);
    if ((e->o.uncredited || e->turn % CROSS_EVERY == 0) &&
        evolve_parents(e, part_stream(e, PART_PARENTS), &out->x, &out->y))
        out->from = FROM_PARENTS;
    else if (informed &&
             brood_best(e, part_stream(e, PART_BROOD), &out->strategy, &out->expected_s))
        out->from = FROM_CREDIT;
}

bool evolve_propose(struct evolve *e, size_t nplan, struct proposal *out) {
    *out = (struct proposal){.from = FROM_CHANCE};
    if (e->turn >= nplan && e->o.how == SEARCH_ONCE) {
        e->stopped = "plan";
        return false;
    }
    if (e->turn < nplan && e->o.how != SEARCH_RANDOM) {
        out->from = FROM_PLAN;
        out->plan = (size_t)e->turn;
    } else if (e->o.how == SEARCH_EVOLVE) {
        propose_evolved(e, out);
    }
    if (out->from == FROM_CHANCE)
        evolve_random(e, part_stream(e, PART_RANDOM), &out->strategy);
    return true;
}

/* ---- claims ---- */

bool evolve_tried(const struct evolve *e, const struct strategy *s) {
    for (size_t i = 0; i < e->n; i++)
        if (strategy_equal(e->o.catalogue, &e->trials[i].strategy, s))
            return true;
    return false;
}

bool evolve_exists(const struct evolve *e, const struct strategy *s) {
    return !e->o.only || bsearch(s, e->o.only, e->o.nonly, sizeof *s, strategy_order);
}

/* The nearest untried of the only ones; of equally near ones a drawn one. */
static bool find_nearest(const struct evolve *e, struct rng r, const struct strategy *proposal,
                         struct strategy *out) {
    size_t start = rng_below(r, 0, e->o.nonly), nearest = e->o.nonly;
    double least = INFINITY;
    for (size_t i = 0; i < e->o.nonly; i++) {
        size_t at = (start + i) % e->o.nonly;
        double d = strategy_distance(e->o.catalogue, proposal, &e->o.only[at]);
        if (d < least && !evolve_tried(e, &e->o.only[at])) {
            least = d;
            nearest = at;
        }
    }
    if (nearest < e->o.nonly)
        *out = e->o.only[nearest];
    return nearest < e->o.nonly;
}

static bool find_left(const struct evolve *e, struct rng r, struct strategy *out) {
    uint64_t space = strategy_space(e->o.catalogue, &e->o.ground);
    if (space > ENUMERATE_MAX)
        return false;
    uint64_t start = rng_below(r, 0, space);
    for (uint64_t i = 0; i < space; i++) {
        strategy_at(e->o.catalogue, &e->o.ground, (start + i) % space, out);
        if (!evolve_tried(e, out))
            return true;
    }
    return false;
}

/* Further and further away: the proposal, a walk of mutations from it, anywhere, what is left. A
 * random search does not look near by: that would not be chance. */
static bool find_untried(const struct evolve *e, struct rng r, const struct strategy *proposal,
                         struct strategy *out) {
    *out = *proposal;
    for (uint64_t i = 0; e->o.how != SEARCH_RANDOM && i < MUTATIONS; i++) {
        if (!evolve_tried(e, out) && evolve_exists(e, out))
            return true;
        if (e->o.only)
            return find_nearest(e, rng_sub(r, i), proposal, out);
        strategy_mutate(e->o.catalogue, &e->o.ground, out, rng_sub(r, i), out);
    }
    for (uint64_t i = 0; i < RANDOM_TRIES; i++) {
        if (!evolve_tried(e, out))
            return true;
        evolve_random(e, rng_sub(r, MUTATIONS + i), out);
    }
    struct rng last = rng_sub(r, MUTATIONS + RANDOM_TRIES);
    return !evolve_tried(e, out) ||
           (e->o.only ? find_nearest(e, last, out, out) : find_left(e, last, out));
}

bool evolve_claim(struct evolve *e, uint64_t attempt, const struct strategy *proposal,
                  size_t *trial) {
    struct evolve_trial t = {.turn = e->turn, .twin = e->n, .time_s = INFINITY};
    struct rng r = rng_sub(part_stream(e, PART_CLAIM), attempt);
    if (!find_untried(e, r, proposal, &t.strategy)) {
        e->stopped = "space"; /* what is under way is still evaluated */
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

static void take_note(struct evolve *e, size_t trial) {
    e->order = mem_grow(e->order, &e->cap_order, e->nordered + 1, sizeof *e->order);
    e->order[e->nordered++] = trial;
}

static void settle_twin(struct evolve *e, size_t trial) {
    struct evolve_trial *t = &e->trials[trial];
    t->settled = true;
    t->time_s = e->trials[t->twin].time_s;
    t->aligned = e->trials[t->twin].aligned;
    t->candidate = e->trials[t->twin].candidate;
    take_note(e, trial);
}

void evolve_twin(struct evolve *e, size_t trial, size_t of) {
    BUG_IF(of >= trial || !e->trials[of].submitted);
    e->trials[trial].twin = of;
    if (e->trials[of].settled)
        settle_twin(e, trial);
}

void evolve_pass(struct evolve *e) {
    e->turn++;
    e->passed++;
    look_for_end(e);
}

void evolve_submit(struct evolve *e, size_t trial) {
    struct evolve_trial *t = &e->trials[trial];
    BUG_IF(t->submitted || (e->o.candidates && e->submitted >= e->o.candidates));
    t->submitted = true;
    t->ordinal = t->candidate = e->submitted++;
    e->turn++;
    e->passed = 0;
    look_for_end(e);
}

bool evolve_settle(struct evolve *e, size_t trial, double time_s) {
    struct evolve_trial *t = &e->trials[trial];
    BUG_IF(!t->submitted || t->settled || t->ordinal != e->settled);
    t->settled = true;
    t->time_s = time_s > 0 ? time_s : INFINITY;
    e->settled++;
    take_note(e, trial);
    for (size_t i = trial + 1; i < e->n; i++)
        if (e->trials[i].twin == trial)
            settle_twin(e, i);
    bool is_best = t->time_s < e->best_s;
    if (is_best) {
        e->best_s = t->time_s;
        e->best = trial;
    }
    if (e->settled % e->o.population == 0)
        close_generation(e);
    look_for_end(e);
    return is_best;
}
