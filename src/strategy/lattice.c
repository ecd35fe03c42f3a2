#include "strategy/lattice.h"

#include "strategy/reader.h"
#include <stdlib.h>
#include <string.h>

#define ENUMERATED   64 /* times the limit: legal strategies are far fewer than combinations */
#define VALUES_FIRST 4  /* of a decision, at the most */
#define VALUES_LEAST 3

struct thinning {
    const struct lattice_options *o;
    struct arena *a;
    struct lattice *out;
};

void catalogue_copy(const struct catalogue *c, struct arena *a, struct catalogue *out) {
    *out = *c;
    out->decisions = arena_array(a, struct decision, c->n);
    memcpy(out->decisions, c->decisions, c->n * sizeof *c->decisions);
}

void catalogue_keep(struct catalogue *c, size_t decision, const int64_t *values, size_t n,
                    struct arena *a) {
    struct decision *d = &c->decisions[decision];
    d->values = arena_array(a, int64_t, n);
    memcpy(d->values, values, n * sizeof *values);
    d->nvalues = n;
}

static int64_t first_value(const struct thinning *t, size_t decision) {
    int64_t v = t->o->first.value[decision];
    return v == STRATEGY_UNSET ? t->out->catalogue.decisions[decision].fallback : v;
}

static bool stays(const struct thinning *t, size_t decision, int64_t value) {
    return value == t->out->catalogue.decisions[decision].fallback ||
           value == first_value(t, decision);
}

/* Of those that may go, the value whose neighbours are closest; n: none. */
static size_t least_missed(const struct thinning *t, size_t decision, const int64_t *kept,
                           const size_t *rank, size_t n) {
    size_t least = n, least_gap = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        bool end = i == 0 || i + 1 == n;
        size_t gap = end ? SIZE_MAX - 1 : rank[i + 1] - rank[i - 1];
        if (gap < least_gap && !stays(t, decision, kept[i])) {
            least = i;
            least_gap = gap;
        }
    }
    return least;
}

/* The decision's values, all but so many, taken out evenly; no fewer than may go. */
static void thin(struct thinning *t, size_t decision, size_t most) {
    const struct decision *d = &t->o->catalogue->decisions[decision];
    int64_t kept[DECISION_MAX_VALUES];
    size_t rank[DECISION_MAX_VALUES], n = d->nvalues;
    for (size_t i = 0; i < n; i++) {
        kept[i] = d->values[i];
        rank[i] = i;
    }
    while (n > most) {
        size_t go = least_missed(t, decision, kept, rank, n);
        if (go == n)
            break;
        n--;
        memmove(&kept[go], &kept[go + 1], (n - go) * sizeof *kept);
        memmove(&rank[go], &rank[go + 1], (n - go) * sizeof *rank);
    }
    catalogue_keep(&t->out->catalogue, decision, kept, n, t->a);
}

static bool is_fixed(const struct thinning *t, size_t decision) {
    return t->out->fixed >> decision & 1;
}

static void fix(struct thinning *t, size_t decision) {
    thin(t, decision, 1);
    t->out->fixed |= UINT64_C(1) << decision;
}

/* ---- enumeration ---- */

static void combination(const struct thinning *t, uint64_t index, struct strategy *s) {
    const struct catalogue *c = &t->out->catalogue;
    *s = (struct strategy){0};
    for (size_t i = 0; i < STRATEGY_MAX_DECISIONS; i++)
        s->value[i] = STRATEGY_UNSET;
    for (size_t i = 0; i < c->n; i++) {
        const struct decision *d = &c->decisions[i];
        if (d->asked)
            continue; /* repaired to what was asked for */
        if (is_fixed(t, i)) {
            s->value[i] = first_value(t, i);
            continue;
        }
        s->value[i] = d->values[index % d->nvalues];
        index /= d->nvalues;
    }
    strategy_repair(c, &t->o->ground, s);
}

static bool in_ground(const struct thinning *t, size_t decision) {
    const struct decision *d = &t->out->catalogue.decisions[decision];
    for (size_t w = 0; w < WORKLOAD_COUNT; w++)
        if (d->workload[w] && t->o->ground.workload[w])
            return !d->asked; /* what was asked for is no choice */
    return false;
}

static uint64_t combinations(const struct thinning *t) {
    uint64_t n = 1;
    for (size_t i = 0; i < t->out->catalogue.n; i++)
        if (!is_fixed(t, i) &&
            __builtin_mul_overflow(n, t->out->catalogue.decisions[i].nvalues, &n))
            return UINT64_MAX;
    return n;
}

/* Lists what is left; false while that is too many. */
static bool list_all(struct thinning *t) {
    uint64_t n = combinations(t);
    if (n > ENUMERATED * (uint64_t)t->o->limit)
        return false;
    struct strategy *all = mem_alloc((size_t)n * sizeof *all);
    size_t distinct = 0;
    for (uint64_t i = 0; i < n; i++)
        combination(t, i, &all[i]);
    qsort(all, (size_t)n, sizeof *all, strategy_order);
    for (uint64_t i = 0; i < n; i++)
        if (i == 0 || strategy_order(&all[i], &all[distinct - 1]) != 0)
            all[distinct++] = all[i];
    bool few = distinct <= t->o->limit;
    if (few) {
        t->out->n = distinct;
        t->out->at = arena_array(t->a, struct strategy, distinct);
        memcpy(t->out->at, all, distinct * sizeof *all);
    }
    mem_free(all);
    return few;
}

/* ---- the order of taking ---- */

static bool thin_all(struct thinning *t, size_t most) {
    for (size_t i = 0; i < t->out->catalogue.n; i++)
        if (!is_fixed(t, i) && t->out->catalogue.decisions[i].nvalues > most) {
            thin(t, i, most);
            if (list_all(t))
                return true;
        }
    return false;
}

static bool fix_idle(struct thinning *t) {
    for (size_t i = 0; i < t->out->catalogue.n; i++)
        if (!t->out->catalogue.decisions[i].regime[t->o->regime] && !is_fixed(t, i)) {
            fix(t, i);
            if (list_all(t))
                return true;
        }
    return false;
}

static void fix_drawn(struct thinning *t, struct rng r) {
    for (uint64_t position = 0;; position++) {
        size_t left[STRATEGY_MAX_DECISIONS], n = 0;
        for (size_t i = 0; i < t->out->catalogue.n; i++)
            if (!is_fixed(t, i))
                left[n++] = i;
        BUG_IF(n == 0); /* one strategy is within every limit */
        fix(t, left[rng_below(r, position, n)]);
        if (list_all(t))
            return;
    }
}

/* Values back, one at a time, while there is room. */
static void fill_up(struct thinning *t) {
    const struct catalogue *c = &t->out->catalogue;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < c->n; i++) {
            size_t n = c->decisions[i].nvalues;
            if (is_fixed(t, i) || n == t->o->catalogue->decisions[i].nvalues)
                continue;
            thin(t, i, n + 1);
            if (list_all(t))
                more = true;
            else
                thin(t, i, n);
        }
    }
}

static void shuffle(struct lattice *l, struct rng r) {
    for (size_t i = l->n; i > 1; i--) {
        size_t k = rng_below(r, i, i);
        struct strategy s = l->at[k];
        l->at[k] = l->at[i - 1];
        l->at[i - 1] = s;
    }
}

void lattice_make(const struct lattice_options *o, struct arena *a, struct lattice *out) {
    struct thinning t = {o, a, out};
    struct rng r = rng_stream(o->seed, S("lattice"));
    BUG_IF(o->limit == 0);
    *out = (struct lattice){0};
    catalogue_copy(o->catalogue, a, &out->catalogue);
    for (size_t i = 0; i < out->catalogue.n; i++)
        if (!in_ground(&t, i))
            fix(&t, i);
    if (!list_all(&t) && !thin_all(&t, VALUES_FIRST) && !thin_all(&t, VALUES_LEAST) &&
        !fix_idle(&t))
        fix_drawn(&t, rng_sub(r, 0));
    fill_up(&t);
    shuffle(out, rng_sub(r, 1));
}
