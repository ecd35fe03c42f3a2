#include "search/evolve.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOURNAMENT       3
#define MUTATIONS        16         /* of a child that was tried before */
#define RANDOM_TRIES     32         /* after those */
#define ENUMERATE_MAX    (1u << 20) /* spaces up to this are searched for what is left */
#define GAIN             0.005      /* less than this share is no gain for the plateau */
#define HELPFUL          0.3 /* relevance to start from of decisions that help in the regime */
#define OTHER            0.1
#define CROSS_EVERY      4   /* every so many turns a child is asked of the crossover role */
#define OBSERVED_MOST    240 /* more are forgotten, the slowest first */
#define OBSERVED_LEFT    180
#define ELITE            3  /* whose neighbours are all looked at */
#define STEPS_CONSIDERED 2  /* of a task of several, in turns, with values of their own */
#define CHILDREN         24 /* of parents by tournament, every other one mutated */
#define STRANGERS        32
#define LEARN_LATER      3    /* … and of what was known then */
#define LEARN_SHARE      2    /* relevances are learnt again every so much of a population */
#define LEAST_SHOWN      0.01 /* share of the time: less is within what clocks tell apart */

/* Parts of a turn's stream. */
enum { PART_PARENTS = 1, PART_RANDOM, PART_CLAIM, PART_CREDIT };

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
    credit_init(&e->credit, o->catalogue, &o->ground, relevance, o->precedents, o->nprecedents);
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
    if (search_is_at_limit(e->o.limit_s, e->best_s, e->o.stop_share))
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

void evolve_random(const struct evolve *e, struct rng r, struct strategy *out) {
    if (e->o.only)
        *out = e->o.only[rng_below(r, 0, e->o.nonly)];
    else
        strategy_random(e->o.catalogue, &e->o.ground, r, out);
}

/* Two different ones by tournament. One that is alone gets a stranger. */
static bool choose_parents(const struct evolve *e, struct rng r, struct parent *x,
                           struct parent *y) {
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
    if (!choose_parents(e, r, x, y))
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

static bool is_tried(const struct evolve *e, const struct strategy *s) {
    for (size_t i = 0; i < e->n; i++)
        if (strategy_equal(e->o.catalogue, &e->trials[i].strategy, s))
            return true;
    return false;
}

static bool exists(const struct evolve *e, const struct strategy *s) {
    return !e->o.only || bsearch(s, e->o.only, e->o.nonly, sizeof *s, strategy_order);
}

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

/* ---- children by credit ----
 *
 * The search's own children: relatives of the best strategies, screened by credit before any of
 * them is written. */

struct screening {
    struct evolve *e;
    double target; /* logarithm to improve on */
    struct strategy best;
    double most;
    bool found;
};

static void consider(struct screening *n, const struct strategy *s) {
    if (!exists(n->e, s) || is_tried(n->e, s))
        return;
    double gain = credit_improvement(&n->e->credit, s, n->target, n->found ? n->most : -1);
    if (n->found && !(gain > n->most))
        return;
    n->found = true;
    n->most = gain;
    n->best = *s;
}

static void consider_neighbours(struct screening *n, const struct strategy *of) {
    const struct evolve_options *o = &n->e->o;
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
            consider(n, &s);
        }
    }
}

/* One value of one step changed. */
static void consider_step(struct screening *n, const struct strategy *of, size_t step) {
    const struct evolve_options *o = &n->e->o;
    for (size_t d = 0; d < o->catalogue->n; d++) {
        const struct decision *decision = &o->catalogue->decisions[d];
        bool has = strategy_step_has(o->catalogue, &o->ground, step, d) &&
                   strategy_value_in(of, step, d) != STRATEGY_UNSET;
        for (size_t v = 0; has && v < decision->nvalues; v++) {
            struct strategy s = *of;
            if (decision->values[v] != strategy_value_in(of, step, d) &&
                strategy_put_own(o->catalogue, &o->ground, &s, step, d, decision->values[v]))
                consider(n, &s);
        }
    }
}

static void consider_children(struct screening *n, struct rng r) {
    const struct evolve_options *o = &n->e->o;
    for (uint64_t i = 0; i < CHILDREN; i++) {
        struct parent x, y;
        struct strategy child;
        struct rng own = rng_sub(r, i);
        if (!choose_parents(n->e, rng_sub(own, 0), &x, &y))
            return;
        strategy_cross(o->catalogue, &o->ground, &x.strategy, &y.strategy, rng_sub(own, 1), &child);
        if (i % 2)
            strategy_mutate(o->catalogue, &o->ground, &child, rng_sub(own, 2), &child);
        consider(n, &child);
    }
}

static void consider_strangers(struct screening *n, struct rng r) {
    for (uint64_t i = 0; i < STRANGERS; i++) {
        struct strategy s;
        evolve_random(n->e, rng_sub(r, i), &s);
        consider(n, &s);
    }
}

/* The untried strategy, among relatives of the best and some strangers, of which credit expects the
 * largest improvement. False: it found none. */
static bool choose_by_credit(struct evolve *e, struct rng r, struct strategy *out,
                             double *expected_s) {
    size_t known = tell_credit(e), *alive = mem_alloc((e->o.population + 1) * sizeof *alive);
    struct screening n = {.e = e, .target = isfinite(e->best_s) ? log(e->best_s) : 0};
    assume_pending(e);
    size_t nalive = evolve_survivors(e, alive);
    for (size_t i = 0; i < nalive && i < ELITE; i++)
        consider_neighbours(&n, &e->trials[alive[i]].aligned);
    for (size_t k = 0; nalive && e->o.ground.nsteps > 1 && k < STEPS_CONSIDERED; k++)
        consider_step(&n, &e->trials[alive[0]].aligned,
                      1 + (e->turn * STEPS_CONSIDERED + k) % e->o.ground.nsteps);
    consider_children(&n, rng_sub(r, 0));
    consider_strangers(&n, rng_sub(r, 1));
    mem_free(alive);
    double mean = 0, sd;
    if (n.found) {
        credit_predict(&e->credit, &n.best, &mean, &sd);
        *out = n.best;
        *expected_s = known ? exp(mean) : INFINITY; /* precedents' times are relative */
    }
    credit_drop(&e->credit, known);
    return n.found;
}

/* ---- proposals ---- */

static void propose_evolved(struct evolve *e, struct proposal *out) {
    bool informed = !e->o.uncredited && (isfinite(e->best_s) || e->o.nprecedents);
    if ((e->o.uncredited || e->turn % CROSS_EVERY == 0) &&
        choose_parents(e, part_stream(e, PART_PARENTS), &out->x, &out->y))
        out->from = FROM_PARENTS;
    else if (informed &&
             choose_by_credit(e, part_stream(e, PART_CREDIT), &out->strategy, &out->expected_s))
        out->from = FROM_CREDIT;
}

bool evolve_propose(struct evolve *e, size_t nplan, struct proposal *out) {
    *out = (struct proposal){.from = FROM_CHANCE};
    if (e->turn >= nplan && e->o.method == SEARCH_ONCE) {
        e->stopped = "plan";
        return false;
    }
    if (e->turn < nplan && e->o.method != SEARCH_RANDOM) {
        out->from = FROM_PLAN;
        out->plan = (size_t)e->turn;
    } else if (e->o.method == SEARCH_EVOLVE) {
        propose_evolved(e, out);
    }
    if (out->from == FROM_CHANCE)
        evolve_random(e, part_stream(e, PART_RANDOM), &out->strategy);
    return true;
}

/* ---- claims ---- */

/* The nearest untried of the only ones; of equally near ones a drawn one. */
static bool find_nearest(const struct evolve *e, struct rng r, const struct strategy *proposal,
                         struct strategy *out) {
    size_t start = rng_below(r, 0, e->o.nonly), nearest = e->o.nonly;
    double least = INFINITY;
    for (size_t i = 0; i < e->o.nonly; i++) {
        size_t at = (start + i) % e->o.nonly;
        double d = strategy_distance(e->o.catalogue, proposal, &e->o.only[at]);
        if (d < least && !is_tried(e, &e->o.only[at])) {
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
        if (!is_tried(e, out))
            return true;
    }
    return false;
}

/* Further and further away: the proposal, a walk of mutations from it, anywhere, what is left. A
 * random search does not look near by: that would not be chance. */
static bool find_untried(const struct evolve *e, struct rng r, const struct strategy *proposal,
                         struct strategy *out) {
    *out = *proposal;
    for (uint64_t i = 0; e->o.method != SEARCH_RANDOM && i < MUTATIONS; i++) {
        if (!is_tried(e, out) && exists(e, out))
            return true;
        if (e->o.only)
            return find_nearest(e, rng_sub(r, i), proposal, out);
        strategy_mutate(e->o.catalogue, &e->o.ground, out, rng_sub(r, i), out);
    }
    for (uint64_t i = 0; i < RANDOM_TRIES; i++) {
        if (!is_tried(e, out))
            return true;
        evolve_random(e, rng_sub(r, MUTATIONS + i), out);
    }
    struct rng last = rng_sub(r, MUTATIONS + RANDOM_TRIES);
    return !is_tried(e, out) ||
           (e->o.only ? find_nearest(e, last, out, out) : find_left(e, last, out));
}

bool evolve_claim(struct evolve *e, uint64_t attempt, const struct strategy *proposal,
                  size_t *trial) {
    struct evolve_trial t = {.turn = e->turn, .same_as = e->n, .time_s = INFINITY};
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

static void settle_same(struct evolve *e, size_t trial) {
    struct evolve_trial *t = &e->trials[trial];
    t->settled = true;
    t->time_s = e->trials[t->same_as].time_s;
    t->aligned = e->trials[t->same_as].aligned;
    t->candidate = e->trials[t->same_as].candidate;
    take_note(e, trial);
}

void evolve_same_source(struct evolve *e, size_t trial, size_t of) {
    BUG_IF(of >= trial || !e->trials[of].submitted);
    e->trials[trial].same_as = of;
    if (e->trials[of].settled)
        settle_same(e, trial);
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
        if (e->trials[i].same_as == trial)
            settle_same(e, i);
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

double evolve_naive_s(const struct evolve *e) {
    struct strategy fallback;
    strategy_fallback(e->o.catalogue, &e->o.ground, &fallback);
    for (size_t i = 0; i < e->n; i++)
        if (strategy_equal(e->o.catalogue, &e->trials[i].strategy, &fallback))
            return e->trials[i].time_s;
    return INFINITY;
}

/* ---- what decisions were worth ----
 *
 * By pairs: two accepted candidates whose code has the same decisions but for one, which one of
 * them has as the winner does and the other at its default. The ratio of their times is an
 * observation, not a model's; a decision without such a pair is not spoken of. A decision's worth
 * depends on the others, so of several pairs the median is told with its range. */

static bool is_accepted(const struct evolve_trial *t) {
    return t->submitted && t->settled && isfinite(t->time_s);
}

/* The accepted candidate that has these decisions; n: none. */
static size_t find_like(const struct evolve *e, const struct strategy *s) {
    size_t i = 0;
    while (i < e->n && !(is_accepted(&e->trials[i]) &&
                         strategy_equal(e->o.catalogue, &e->trials[i].aligned, s)))
        i++;
    return i;
}

/* The ratios of the pairs, the default's time over the other's; returns how many. */
static size_t find_ratios(const struct evolve *e, size_t decision, int64_t value, double *out) {
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++) {
        struct strategy other = e->trials[i].aligned;
        if (!is_accepted(&e->trials[i]) || other.value[decision] != value)
            continue;
        other.value[decision] = e->o.catalogue->decisions[decision].fallback;
        size_t like = find_like(e, &other);
        if (like < e->n)
            out[n++] = e->trials[like].time_s / e->trials[i].time_s;
    }
    return n;
}

static int by_number(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static int by_worth(const void *x, const void *y) {
    const struct search_worth *a = x, *b = y;
    if (a->times != b->times)
        return a->times > b->times ? -1 : 1;
    return a->decision < b->decision ? -1 : 1;
}

static bool find_worth(const struct evolve *e, const struct strategy *s, size_t decision,
                       double *room, struct search_worth *out) {
    int64_t value = s->value[decision];
    if (value == STRATEGY_UNSET || value == e->o.catalogue->decisions[decision].fallback)
        return false;
    size_t n = find_ratios(e, decision, value, room);
    if (n == 0)
        return false;
    qsort(room, n, sizeof *room, by_number);
    double median = n % 2 ? room[n / 2] : sqrt(room[n / 2 - 1] * room[n / 2]);
    *out = (struct search_worth){decision, median, room[0], room[n - 1], n};
    return !(fabs(median - 1) < LEAST_SHOWN);
}

size_t evolve_worth(const struct evolve *e, size_t trial,
                    struct search_worth list[STRATEGY_MAX_DECISIONS]) {
    const struct strategy *s = &e->trials[trial].aligned;
    double *room = mem_alloc((e->n + 1) * sizeof *room);
    size_t n = 0;
    for (size_t i = 0; i < e->o.catalogue->n; i++)
        n += find_worth(e, s, i, room, &list[n]);
    qsort(list, n, sizeof *list, by_worth);
    mem_free(room);
    return n;
}

void evolve_put_worth(const struct catalogue *c, const struct strategy *s,
                      const struct search_worth *list, size_t n, struct buf *out) {
    for (const struct search_worth *w = list; w < list + n; w++) {
        buf_printf(out, "%s%.*s=%lld %.2fx (", out->n ? ", " : "",
                   STR_ARG(c->decisions[w->decision].name), (long long)s->value[w->decision],
                   w->times);
        if (w->pairs > 1)
            buf_printf(out, "%.2fx to %.2fx in %zu pairs)", w->least, w->most, w->pairs);
        else
            buf_puts(out, S("1 pair)"));
    }
}
