/* The expert's planner and crossover: rules by roofline regime first, then strategies as far apart
 * as possible, so that the first generation both bets and looks around. */
#include "agent/expert/expert.h"
#include <math.h>

#define SAMPLES      64  /* random strategies that the farthest is chosen from */
#define MUTATE_SHARE 0.3 /* of children */
#define TRIES        8   /* to make a child that is neither parent */
#define SMALL_LAUNCH 1.0 /* a limit under this many launch times is a matter of latency */
#define ACCESS_BYTES 16  /* the widest load there is */

enum { RULES_MAX = 8 };

/* A rule in units that fit any dtype: width 0 stands for a 16-byte access. */
struct bet {
    int width, items, block, persistent, hint;
};
static const struct bet memory_rules[] = {
    {0, 2, 256, 0, 0}, {0, 4, 256, 0, 0}, {0, 1, 256, 0, 0},
    {0, 2, 512, 0, 1}, {0, 4, 128, 1, 0}, {0, 2, 256, 1, 1},
};
static const struct bet compute_rules[] = {
    {0, 1, 256, 0, 0},
    {2, 1, 256, 0, 0},
    {0, 1, 128, 0, 0},
    {0, 2, 128, 1, 0},
};
static const struct bet latency_rules[] = {
    {2, 1, 128, 0, 0},
    {1, 1, 128, 0, 0},
    {1, 1, 64, 0, 0},
    {0, 1, 64, 0, 0},
};
static const struct {
    const struct bet *rules;
    size_t n;
    const char *why;
} regimes[REGIME_COUNT] = {
    [REGIME_MEMORY] = {memory_rules, sizeof memory_rules / sizeof *memory_rules,
                       "16-byte accesses with several in flight first"},
    [REGIME_COMPUTE] = {compute_rules, sizeof compute_rules / sizeof *compute_rules,
                        "few registers a thread and high occupancy first"},
    [REGIME_LATENCY] = {latency_rules, sizeof latency_rules / sizeof *latency_rules,
                        "small blocks over all SMs first"},
};

static enum regime regime_of(const struct briefing *b) {
    if (b->roofline.limit_s < SMALL_LAUNCH * b->gpu->launch_s)
        return REGIME_LATENCY;
    return b->roofline.memory_bound ? REGIME_MEMORY : REGIME_COMPUTE;
}

/* Decisions that a changed catalogue does not have keep their defaults. */
static void apply_rule(const struct briefing *b, const struct bet *rule, struct strategy *out) {
    const struct catalogue *c = b->catalogue;
    int wide = ACCESS_BYTES / (int)dtype_info(b->features.dtype)->bytes;
    strategy_fallback(c, &b->ground, out);
    strategy_put(c, out, "vector-width", rule->width ? rule->width : wide < 8 ? wide : 8);
    strategy_put(c, out, "items", rule->items);
    strategy_put(c, out, "block", rule->block);
    strategy_put(c, out, "persistent", rule->persistent);
    strategy_put(c, out, "cache-hint", rule->hint);
    strategy_repair(c, &b->ground, out);
}

struct list {
    const struct catalogue *c;
    struct strategy *at;
    size_t n, max;
};

static void add_new(struct list *l, const struct strategy *s) {
    for (size_t i = 0; i < l->n; i++)
        if (strategy_equal(l->c, &l->at[i], s))
            return;
    if (l->n < l->max)
        l->at[l->n++] = *s;
}

static double distance_to(const struct list *l, const struct strategy *s) {
    double least = INFINITY;
    for (size_t i = 0; i < l->n; i++)
        least = fmin(least, strategy_distance(l->c, &l->at[i], s));
    return least;
}

/* Farthest first, of a fresh set of samples each time. */
static void add_far(struct list *l, const struct ground *g, struct rng r) {
    struct strategy best, sample;
    double far = 0;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        strategy_random(l->c, g, rng_sub(r, i), &sample);
        double d = distance_to(l, &sample);
        if (d > far) {
            far = d;
            best = sample;
        }
    }
    if (far > 0)
        add_new(l, &best);
}

size_t planner_plan(const struct briefing *b, size_t n, struct rng r, struct strategy *out,
                    struct buf *reason) {
    enum regime regime = regime_of(b);
    struct list l = {b->catalogue, out, 0, n};
    struct strategy s, naive;
    strategy_fallback(b->catalogue, &b->ground, &naive);
    for (size_t i = 0; i < regimes[regime].n; i++) {
        /* The last place is kept for the fallback until it is in. */
        if (l.n + 1 == n)
            add_new(&l, &naive);
        apply_rule(b, &regimes[regime].rules[i], &s);
        add_new(&l, &s);
        if (i == 1)
            add_new(&l, &naive);
    }
    add_new(&l, &naive);
    for (uint64_t i = 0; l.n < n && i < 2 * n; i++)
        add_far(&l, &b->ground, rng_sub(r, i));
    static const char *const names[REGIME_COUNT] = {"memory-bound", "compute-bound",
                                                    "latency-bound"};
    buf_printf(reason, "%s (%.2g flop a byte): %s, the naive kernel, then strategies far apart",
               names[regime], b->roofline.intensity, regimes[regime].why);
    return l.n;
}

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
