/* The expert's planner and crossover. Openings by family and regime (openings.h) come with what did
 * well on similar tasks between them, or strategies drawn at random where there is no history, so
 * that the first generation both bets and looks around. What does not help in the task's regime is
 * looked around in less: half of it stays as the first opening has it. Without the roofline there
 * is no regime: only openings that hold in any are left, and all decisions are looked around in. */
#include "agent/expert/expert.h"
#include "agent/expert/form/partition.h"
#include "agent/expert/plan/openings.h"
#include "eval/eval.h"
#include <math.h>

#define DRAWS        8   /* for a stranger */
#define KEEP_SHARE   0.5 /* of decisions that do not help in the regime stay */
#define MUTATE_SHARE 0.3 /* of children */
#define TRIES        8   /* to make a child that is neither parent */
#define OPENINGS     8   /* of a task, at the most */

/* ---- the list ---- */

struct list {
    const struct briefing *b;
    struct strategy *at;
    size_t n, max;
    size_t recalled; /* of history, looked at so far */
    size_t adopted;  /* of them in the list */
};

static void add_new(struct list *l, const struct strategy *s) {
    for (size_t i = 0; i < l->n; i++)
        if (strategy_equal(l->b->catalogue, &l->at[i], s))
            return;
    if (l->n < l->max)
        l->at[l->n++] = *s;
}

/* Random where the regime makes it worth while, elsewhere mostly as the first opening has it. */
static void sample(const struct list *l, enum regime regime, struct rng r, struct strategy *out) {
    const struct catalogue *c = l->b->catalogue;
    strategy_random(c, &l->b->ground, r, out);
    for (size_t i = 0; l->n && i < c->n; i++)
        if (regime < REGIME_COUNT && !c->decisions[i].regime[regime] &&
            rng_unit(rng_sub(r, i), 0) < KEEP_SHARE)
            out->value[i] = l->at[0].value[i];
    strategy_repair(c, &l->b->ground, out);
}

/* One that is not in the list yet, where a few draws find it. */
static void add_stranger(struct list *l, enum regime regime, struct rng r) {
    size_t before = l->n;
    for (uint64_t i = 0; i < DRAWS && l->n == before; i++) {
        struct strategy s;
        sample(l, regime, rng_sub(r, i), &s);
        add_new(l, &s);
    }
}

/* The next of history that is not in the list yet, or a stranger. */
static void add_between(struct list *l, enum regime regime, struct rng r) {
    size_t before = l->n;
    while (l->n == before && l->recalled < l->b->nhistory)
        add_new(l, &l->b->history[l->recalled++].strategy);
    l->adopted += l->n - before;
    if (l->n == before)
        add_stranger(l, regime, r);
}

/* ---- openings ---- */

/* The step that takes longest, as far as the roofline knows. */
static size_t longest_step(const struct briefing *b, const struct partition *p) {
    size_t longest = 0;
    double most = 0;
    for (size_t i = 0; i < p->n; i++) {
        double s = task_limit(b->gpu, p->steps[i].inst).limit_s;
        if (s > most) {
            most = s;
            longest = i;
        }
    }
    return longest;
}

/* Whether any of these steps goes by the decision. */
static bool any_has(const struct briefing *b, const bool *steps, size_t n, size_t decision) {
    for (size_t i = 0; i < n; i++)
        if (steps[i] && strategy_step_has(b->catalogue, &b->ground, i + 1, decision))
            return true;
    return false;
}

/* A step's first opening beside those of the steps that are `placed`: shared where none of them
 * goes by the decision, otherwise the step's own. */
static void place_opening(const struct opening_book *book, const struct briefing *b,
                          const struct partition *p, size_t step, enum regime regime,
                          const bool *placed, struct strategy *s) {
    const struct opening *first;
    struct strategy wanted, shared = *s;
    strategy_fallback(b->catalogue, &b->ground, &wanted);
    if (openings_of(book, b, &p->steps[step], regime, &first, 1))
        opening_put(b, &p->steps[step], first, &wanted);
    strategy_repair(b->catalogue, &b->ground, &wanted);
    for (size_t d = 0; d < b->catalogue->n; d++)
        if (strategy_step_has(b->catalogue, &b->ground, step + 1, d) &&
            !any_has(b, placed, p->n, d))
            shared.value[d] = wanted.value[d];
    strategy_repair(b->catalogue, &b->ground, &shared);
    *s = shared;
    strategy_impose_on_step(b->catalogue, &b->ground, &wanted, step + 1, s);
}

/* The openings of the longest step, each beside the first of every other. */
static size_t find_openings(const struct opening_book *book, const struct briefing *b,
                            const struct partition *p, enum regime regime, struct strategy *out,
                            struct buf *reason) {
    size_t longest = longest_step(b, p);
    const struct opening *openings[OPENINGS];
    size_t n = openings_of(book, b, &p->steps[longest], regime, openings, OPENINGS);
    for (size_t i = 0; i < n; i++) {
        bool placed[PARTITION_STEPS] = {false};
        strategy_fallback(b->catalogue, &b->ground, &out[i]);
        opening_put(b, &p->steps[longest], openings[i], &out[i]);
        strategy_repair(b->catalogue, &b->ground, &out[i]);
        placed[longest] = true;
        for (size_t k = 0; k < p->n; k++) {
            if (k == longest)
                continue;
            place_opening(book, b, p, k, regime, placed, &out[i]);
            placed[k] = true;
        }
    }
    if (n)
        buf_printf(reason, "%.*s first", STR_ARG(openings[0]->why));
    return n;
}

/* With others between them, as none may fit: two after the first, one after each other. The naive
 * kernel has the last place until it is in. */
static void add_openings(struct list *l, const struct opening_book *book, enum regime regime,
                         struct rng r, struct buf *reason) {
    struct arena *a = arena_new((size_t)64 << 20);
    struct strategy openings[OPENINGS], naive;
    struct err err = {0};
    const struct partition *p = expert_steps(l->b, a, &err);
    strategy_fallback(l->b->catalogue, &l->b->ground, &naive);
    size_t n = p ? find_openings(book, l->b, p, regime, openings, reason) : 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < (i == 1 ? 2 : i > 1) && l->n + 1 < l->max; k++)
            add_between(l, regime, rng_sub(rng_sub(r, i), k));
        if (l->n + 1 == l->max)
            add_new(l, &naive);
        add_new(l, &openings[i]);
    }
    add_new(l, &naive);
    arena_free(a);
}

size_t planner_plan(const struct opening_book *book, const struct briefing *b, size_t n,
                    struct rng r, struct strategy *out, struct buf *reason) {
    static const char *const names[REGIME_COUNT + 1] = {"memory-bound", "compute-bound",
                                                        "latency-bound", "no roofline"};
    enum regime regime = b->blind ? REGIME_COUNT : briefing_regime(b);
    struct list l = {b, out, 0, n, 0, 0};
    buf_printf(reason, "%s", names[regime]);
    if (!b->blind)
        buf_printf(reason, " (%.2g flop a byte)", b->roofline.intensity);
    buf_puts(reason, S(": "));
    size_t before = reason->n;
    add_openings(&l, book, regime, rng_sub(r, 0), reason);
    for (uint64_t i = 0; l.n < n && i < 2 * n; i++)
        add_between(&l, regime, rng_sub(r, i + 1));
    if (reason->n > before)
        buf_puts(reason, S(", "));
    if (l.adopted)
        buf_printf(reason, "%zu that did well on similar tasks, ", l.adopted);
    buf_puts(reason, S("strategies drawn between them, the naive kernel"));
    return l.n;
}

/* ---- crossover ---- */

static void put_parent(const struct briefing *b, const struct parent *p, struct buf *out) {
    buf_putc(out, '[');
    strategy_text(b->catalogue, &p->strategy, out);
    buf_putc(out, ']');
    if (isfinite(p->time_s))
        buf_printf(out, " (%.4g us)", p->time_s * 1e6);
}

void planner_cross(const struct briefing *b, const struct parent *x, const struct parent *y,
                   struct rng r, struct strategy *out, struct buf *reason) {
    const struct catalogue *c = b->catalogue;
    strategy_cross(c, &b->ground, &x->strategy, &y->strategy, rng_sub(r, 0), out);
    bool mutate = rng_unit(r, 0) < MUTATE_SHARE;
    for (uint64_t i = 0; i < TRIES; i++) {
        bool parent = strategy_equal(c, out, &x->strategy) || strategy_equal(c, out, &y->strategy);
        if (!mutate && !parent)
            break;
        mutate = false;
        strategy_mutate(c, &b->ground, out, rng_sub(r, i + 1), out);
    }
    buf_puts(reason, S("child of "));
    put_parent(b, x, reason);
    buf_puts(reason, S(" and "));
    put_parent(b, y, reason);
}
