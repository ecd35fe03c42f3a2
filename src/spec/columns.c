/* Columns: a term each for the results of all lanes. Loops without branches, so that they become
 * vector arithmetic; what is out of the ordinary is found at the end and looked at again. */
#include "base/wide.h"

#include "spec/fold.h"

#include <float.h>
#include <math.h>
#include <string.h>

void columns_start(struct columns *c, const struct fold *f) {
    double first = fold_first(f);
    c->f = f;
    c->length = 0;
    c->full = 0;
    c->total = 0;
    for (size_t l = 0; l < LANES; l++)
        c->s[l] = first;
    memset(c->e, 0, sizeof c->e);
    memset(c->q, 0, sizeof c->q);
    memset(c->a, 0, sizeof c->a);
    memset(c->w, 0, sizeof c->w);
    memset(c->last, 0, sizeof c->last);
    memset(c->run, 0, sizeof c->run);
    memset(c->lost, 0, sizeof c->lost);
    memset(c->counted, 0, sizeof c->counted);
    memset(c->before, 0, sizeof c->before);
    memset(c->bias, 0, sizeof c->bias);
    memset(c->count, 0, sizeof c->count);
    memset(c->doubt, 0, sizeof c->doubt);
    memset(c->doubts, 0, sizeof c->doubts);
    memset(c->at, 0, sizeof c->at);
    memset(c->odd, 0, sizeof c->odd);
    memset(c->seen, 0, sizeof c->seen);
    memset(c->peak, 0, sizeof c->peak);
}

/* How far partial results may come in some order of the terms. */
static void note_reach(struct columns *c, const struct reg *t, const struct reg *guard, size_t n) {
    bool product = c->f->op == REDUCTION_PROD;
    for (size_t l = 0; l < n && c->f->track_peak; l++) {
        double m = fabs(t->v[l]), was = c->peak[l];
        if (!isfinite(m) || (guard && guard->v[l] == 0))
            continue;
        c->peak[l] = !product ? was + m : was > 1 ? was * (m > 1 ? m : 1) : m;
    }
}

static void note_odd(struct columns *c, size_t n) {
    double most2 = c->f->most * c->f->most;
    for (size_t l = 0; l < n; l++)
        c->odd[l] |= !(c->q[l] <= most2) || !(c->e[l] <= DBL_MAX);
}

static void add_levels(struct columns *c, size_t k, size_t n) {
    double unit2 = c->f->unit2;
    for (size_t l = 0; l < n; l++) {
        c->s[l] += c->level[k].s[l];
        c->e[l] += c->level[k].e[l] + unit2 * c->s[l] * c->s[l];
    }
}

WIDE static void close_chain(struct columns *c, size_t n) {
    const struct fold *f = c->f;
    double length = (double)c->length;
    note_odd(c, n);
    for (size_t l = 0; l < n; l++) {
        double terms = f->masked ? c->count[l] - c->counted[l] : length;
        c->bias[l] += terms * c->before[l] + c->a[l];
        c->before[l] += c->s[l];
        c->e[l] += f->relative2 * c->w[l] + fold_chain(f, terms, c->s[l], c->q[l], c->w[l]);
        c->counted[l] = c->count[l];
        c->q[l] = c->a[l] = c->w[l] = c->run[l] = 0;
    }
    c->length = 0;
}

/* The chain is as long as it may be: its result joins those of earlier chains like a carry. */
static void carry(struct columns *c, size_t n) {
    size_t k = 0;
    close_chain(c, n);
    for (; c->full >> k & 1; k++)
        add_levels(c, k, n);
    memcpy(c->level[k].s, c->s, n * sizeof *c->s);
    memcpy(c->level[k].e, c->e, n * sizeof *c->e);
    c->full++;
    memset(c->s, 0, n * sizeof *c->s);
    memset(c->e, 0, n * sizeof *c->e);
}

WIDE static void sum_all(struct columns *restrict c, const struct reg *restrict t, size_t n) {
    for (size_t l = 0; l < n; l++) {
        double v = t->v[l], s = c->s[l] + v;
        double run = fold_repeats(v, c->last[l], s) ? c->run[l] : 0;
        bool lost = fold_loses(v, s);
        c->s[l] = s;
        c->q[l] += lost ? 0 : s * s + 2 * s * run;
        c->run[l] = lost ? run : run + s;
        c->lost[l] += lost ? v : 0;
        c->last[l] = v;
        c->w[l] += v * v;
    }
    if (!c->f->exact)
        for (size_t l = 0; l < n; l++)
            c->e[l] += t->e[l];
    if (c->f->truncation > 0)
        for (size_t l = 0; l < n; l++)
            c->a[l] += c->s[l];
}

/* A product that is summed, without a pass of its own; lone: x is the same in all lanes. */
WIDE static void sum_products(struct columns *restrict c, const double *restrict x,
                              const double *restrict y, bool lone, size_t n) {
    double first = x[0];
    if (lone)
        for (size_t l = 0; l < n; l++) {
            double v = first * y[l], s = c->s[l] + v;
            c->s[l] = s;
            c->q[l] += v == 0 ? 0 : s * s;
            c->w[l] += v * v;
        }
    else
        for (size_t l = 0; l < n; l++) {
            double v = x[l] * y[l], s = c->s[l] + v;
            c->s[l] = s;
            c->q[l] += v == 0 ? 0 : s * s;
            c->w[l] += v * v;
        }
    if (c->f->truncation > 0)
        for (size_t l = 0; l < n; l++)
            c->a[l] += c->s[l];
}

void columns_added(struct columns *c, size_t terms, size_t n) {
    c->total += (double)terms;
    c->length += terms;
    if (c->length == CHAIN)
        carry(c, n);
}

void columns_add_product(struct columns *c, const struct reg *x, bool x_lone, const struct reg *y,
                         bool y_lone, size_t n) {
    if (y_lone)
        sum_products(c, y->v, x->v, true, n);
    else
        sum_products(c, x->v, y->v, x_lone, n);
    columns_added(c, 1, n);
}

WIDE static void sum_some(struct columns *restrict c, const struct reg *restrict t,
                          const struct reg *restrict guard, size_t n) {
    bool exact = c->f->exact;
    for (size_t l = 0; l < n; l++) {
        bool in = guard->v[l] != 0;
        double v = in ? t->v[l] : 0, s = c->s[l] + v, e = in && !exact ? t->e[l] : 0;
        double run = fold_repeats(v, c->last[l], s) ? c->run[l] : 0;
        bool lost = fold_loses(v, s);
        c->s[l] = s;
        c->q[l] += lost ? 0 : s * s + 2 * s * run;
        c->run[l] = !in ? c->run[l] : lost ? run : run + s;
        c->lost[l] += lost ? v : 0;
        c->last[l] = in ? v : c->last[l];
        c->a[l] += in ? s : 0;
        c->w[l] += v * v;
        c->e[l] += e;
        c->count[l] += in ? 1 : 0;
    }
}

static void note_doubts(struct columns *c, const struct reg *t, const struct reg *guard, size_t n) {
    for (size_t l = 0; l < n; l++)
        if (guard->e[l] > 0) {
            c->doubt[l] += t->v[l] * t->v[l];
            c->doubts[l]++;
        }
}

static void add_sum(struct columns *c, const struct reg *t, const struct reg *guard, size_t n) {
    if (guard)
        sum_some(c, t, guard, n);
    else
        sum_all(c, t, n);
    if (guard)
        note_doubts(c, t, guard, n);
    note_reach(c, t, guard, n);
    if (++c->length == CHAIN)
        carry(c, n);
}

static void add_product(struct columns *c, const struct reg *t, const struct reg *guard, size_t n) {
    const struct fold *f = c->f;
    for (size_t l = 0; l < n; l++) {
        bool in = !guard || guard->v[l] != 0;
        double v = in ? t->v[l] : 1, e = in && !f->exact ? t->e[l] : 0, s = c->s[l] * v;
        double own = f->unit2 * s * s + (s == 0 ? 0 : f->least2);
        c->e[l] = v * v * c->e[l] + c->s[l] * c->s[l] * e + (in ? own : 0);
        c->s[l] = s;
        c->q[l] = c->q[l] > s * s ? c->q[l] : s * s;
        c->count[l] += in ? 1 : 0;
    }
    if (guard)
        note_doubts(c, t, guard, n);
    note_reach(c, t, guard, n);
}

WIDE static void extreme_exact(struct columns *restrict c, const double *restrict v, double want,
                               size_t n) {
    for (size_t l = 0; l < n; l++) {
        bool better = (want * v[l] > want * c->s[l]) | (v[l] != v[l]);
        c->s[l] = better ? v[l] : c->s[l];
    }
}

static void add_extreme(struct columns *c, const struct reg *t, const struct reg *guard, size_t n,
                        double at) {
    const struct fold *f = c->f;
    bool place = f->op == REDUCTION_ARGMAX || f->op == REDUCTION_ARGMIN;
    if (f->exact && !guard && !place) {
        extreme_exact(c, t->v, f->op == REDUCTION_MAX ? 1 : -1, n);
        return;
    }
    for (size_t l = 0; l < n; l++) {
        bool doubtful = guard && guard->e[l] > 0;
        if (guard && guard->v[l] == 0 && !doubtful)
            continue;
        if (fold_extreme(f, &c->s[l], &c->e[l], t->v[l], f->exact ? 0 : t->e[l], doubtful) ||
            c->count[l] == 0)
            c->at[l] = at;
        c->count[l]++;
    }
}

void columns_add(struct columns *c, const struct reg *term, const struct reg *guard, size_t n,
                 double at) {
    c->total++;
    if (fold_is_extreme(c->f->op))
        add_extreme(c, term, guard, n, at);
    else if (c->f->op == REDUCTION_PROD)
        add_product(c, term, guard, n);
    else
        add_sum(c, term, guard, n);
}

static void close_sum(struct columns *c, size_t n) {
    const struct fold *f = c->f;
    bool more = c->length > 0;
    close_chain(c, n);
    for (size_t k = 0; k < CHAIN_LEVELS; k++) {
        if (!(c->full >> k & 1))
            continue;
        if (more)
            add_levels(c, k, n);
        else {
            memcpy(c->s, c->level[k].s, n * sizeof *c->s);
            memcpy(c->e, c->level[k].e, n * sizeof *c->e);
        }
        more = true;
    }
    for (size_t l = 0; l < n; l++) {
        double bias = f->truncation * c->bias[l];
        c->e[l] += bias * bias + c->doubt[l] + fold_lost(f, c->lost[l]);
    }
}

bool columns_close(struct columns *c, size_t n) {
    bool ordinary = true;
    if (fold_is_extreme(c->f->op))
        return true;
    if (c->f->op != REDUCTION_PROD)
        close_sum(c, n);
    else
        note_odd(c, n);
    for (size_t l = 0; l < n; l++) {
        c->odd[l] |= !(fabs(c->s[l]) <= c->f->most) || !(c->e[l] <= DBL_MAX);
        ordinary &= !c->odd[l];
        c->q[l] = c->f->op == REDUCTION_PROD ? 1 : 0; /* partial results of the second look */
    }
    return ordinary;
}

void columns_look(struct columns *c, const struct reg *term, const struct reg *guard, size_t n) {
    for (size_t l = 0; l < n; l++) {
        bool in = !guard || guard->v[l] != 0, doubtful = guard && guard->e[l] > 0;
        double v = term->v[l];
        if (!c->odd[l] || (!in && !doubtful))
            continue;
        c->seen[l] |= (unsigned char)fold_see_guarded(c->f, v, term->e[l], in, doubtful);
        if (!in)
            continue;
        c->q[l] = c->f->op == REDUCTION_PROD ? c->q[l] * v : c->q[l] + v;
        if (!c->seen[l] && !(fabs(c->q[l]) <= c->f->most))
            c->seen[l] |= SEEN_OVERFLOW;
    }
}

void columns_result(struct columns *c, double *v, double *e, size_t n) {
    const struct fold *f = c->f;
    for (size_t l = 0; l < n; l++) {
        double count = f->masked ? c->count[l] : c->total;
        v[l] = c->s[l];
        e[l] = c->e[l];
        fold_finish(f, count, c->doubts[l], c->at[l], c->seen[l], &v[l], &e[l]);
    }
}
