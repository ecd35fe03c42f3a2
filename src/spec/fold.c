/* Rows: one result, term by term. And what rows and columns share. */
#include "base/wide.h"

#include "spec/fold.h"

#include <float.h>
#include <math.h>

bool fold_ties(const struct fold *f, double best, double best_e, double v, double e) {
    if (isinf(e) || isinf(best_e) || is_open(value_of(v, e)))
        return true;
    return !isnan(best) && value_within(best - v, best_e + e, f->worst);
}

double fold_chain(const struct fold *f, double n, double s, double q, double w) {
    return f->unit2 * (q + n * (s * s / 3 + w / 6));
}

double fold_lost(const struct fold *f, double lost) {
    return f->unit2 * 0x1p48 * lost * lost;
}

bool fold_is_extreme(enum reduction op) {
    return op == REDUCTION_MAX || op == REDUCTION_MIN || op == REDUCTION_ARGMAX ||
           op == REDUCTION_ARGMIN;
}

static double wanted(enum reduction op) {
    return op == REDUCTION_MAX || op == REDUCTION_ARGMAX ? 1 : -1;
}

double fold_first(const struct fold *f) {
    if (fold_is_extreme(f->op))
        return -INFINITY * wanted(f->op);
    return f->op == REDUCTION_PROD ? 1 : 0;
}

bool fold_extreme(const struct fold *f, double *s, double *e, double v, double ev, bool doubtful) {
    double want = wanted(f->op);
    bool better = want * v > want * *s || (isnan(v) && !isnan(*s));
    double other = better ? *e : ev, chosen = better ? ev : *e;
    if (doubtful) { /* with it or without it? */
        *e = better ? INFINITY : *e;
        return false;
    }
    bool value = f->op == REDUCTION_MAX || f->op == REDUCTION_MIN;
    if (is_open(value_of(v, ev)))
        chosen = value ? INFINITY : chosen;
    else if (other > chosen && fold_ties(f, *s, *e, v, ev))
        chosen = other;
    *e = chosen;
    *s = better ? v : *s;
    return better;
}

/* What the terms seen make of a result. Of an infinite term honest kernels may make NaN: by
 * compensation, by splitting the operands of products, or times a product that underflowed. */
static void settle_result(unsigned seen, double *v, double *e) {
    if (seen & SEEN_NAN) {
        *v = NAN;
        *e = 0;
    } else if (seen & SEEN_UNDEFINED || isnan(*v)) {
        *e = INFINITY;
    } else if (seen & SEEN_INFINITE) {
        *e = 1;
    } else if (seen & SEEN_OVERFLOW) {
        *e = INFINITY;
    }
}

static void finish_mean(const struct fold *f, double count, double doubts, double *v, double *e) {
    *v /= count;
    *e = (*e + doubts * *v * *v) / (count * count) + f->unit2 * *v * *v;
    if (count == 0)
        *e = INFINITY;
}

void fold_finish(const struct fold *f, double count, double doubts, double at, unsigned seen,
                 double *v, double *e) {
    if (f->op == REDUCTION_ARGMAX || f->op == REDUCTION_ARGMIN) {
        *v = at;
        *e = count > 0 ? 0 : INFINITY;
    }
    if (fold_is_extreme(f->op))
        return;
    if (f->op == REDUCTION_PROD && doubts > 0)
        *e = INFINITY;
    if (f->op == REDUCTION_MEAN)
        finish_mean(f, count, doubts, v, e);
    /* Terms near the smallest numbers may all round the same way. */
    if (*e > 0 && *e <= DBL_MAX && f->unit2 > 0)
        *e += f->least2 * (f->op == REDUCTION_MEAN ? 1 : count * count);
    settle_result(seen, v, e);
    if (f->unjudged && !(seen & SEEN_NAN))
        *e = INFINITY;
}

void row_start(struct row *r, const struct fold *f) {
    *r = (struct row){.f = f, .s = fold_first(f)};
}

static void note_partial(struct row *r, double s) {
    if (fabs(s) > r->f->most && !r->seen)
        r->seen |= SEEN_OVERFLOW;
}

/* How far a partial result may come in some order of the terms. */
static void note_reach(struct row *r, double v) {
    double m = fabs(v);
    if (!r->f->track_peak || !isfinite(v))
        return;
    if (r->f->op == REDUCTION_PROD)
        r->peak = r->peak > 1 ? r->peak * (m > 1 ? m : 1) : m;
    else
        r->peak += m;
}

/* The chain is as long as it may be: its result joins those of earlier chains like a carry. */
static void row_carry(struct row *r) {
    const struct fold *f = r->f;
    double s = r->s, e = r->e + fold_chain(f, (double)r->length, s, r->q, r->w);
    size_t k = 0;
    r->bias += (double)r->length * r->before + r->a;
    r->before += r->s;
    for (; r->full >> k & 1; k++) {
        s += r->level[k].s;
        e += r->level[k].e + f->unit2 * s * s;
    }
    r->level[k].s = s;
    r->level[k].e = e;
    r->full++;
    for (r->base_s = s, r->base_e = e, k++; k < CHAIN_LEVELS; k++)
        if (r->full >> k & 1) {
            r->base_s += r->level[k].s;
            r->base_e += r->level[k].e + f->unit2 * r->base_s * r->base_s;
        }
    note_partial(r, r->base_s);
    r->s = r->e = r->q = r->a = r->w = r->run = 0;
    r->length = 0;
}

static void row_sum(struct row *r, double v, double e) {
    double s = r->s + v, run = fold_repeats(v, r->last, s) ? r->run : 0;
    bool lost = fold_loses(v, s);
    r->s = s;
    r->e += e + r->f->relative2 * v * v;
    r->q += lost ? 0 : s * s + 2 * s * run;
    r->run = lost ? run : run + s;
    r->lost += lost ? v : 0;
    r->last = v;
    r->a += s;
    r->w += v * v;
    note_partial(r, s);
    if (++r->length == CHAIN)
        row_carry(r);
}

static void row_product(struct row *r, double v, double e) {
    double s = r->s * v;
    r->e = v * v * r->e + r->s * r->s * e + r->f->unit2 * s * s + (s == 0 ? 0 : r->f->least2);
    r->s = s;
    note_partial(r, s);
}

void row_add(struct row *r, const struct reg *term, const struct reg *guard, size_t l, double at) {
    double v = term->v[l], e = r->f->exact ? 0 : term->e[l];
    bool in = !guard || guard->v[l] != 0, doubtful = guard && guard->e[l] > 0;
    if (!in && !doubtful)
        return;
    if (fold_is_extreme(r->f->op)) {
        if (fold_extreme(r->f, &r->s, &r->e, v, e, doubtful) || r->count == 0)
            r->at = at; /* the first is the best so far, be it the least there is */
        r->count++;
        return;
    }
    if (doubtful) {
        r->doubt += v * v;
        r->doubts++;
    }
    r->seen |= fold_see_guarded(r->f, v, term->e[l], in, doubtful);
    if (!in)
        return;
    r->count++;
    note_reach(r, v);
    if (r->f->op == REDUCTION_PROD)
        row_product(r, v, e);
    else
        row_sum(r, v, e);
}

/* Σ v² in groups, which become vectors. */
static double squares_of(const double *v, size_t n) {
    enum { GROUP = 8 };
    double sum[GROUP] = {0};
    size_t l = 0;
    for (; l + GROUP <= n; l += GROUP)
        for (size_t k = 0; k < GROUP; k++)
            sum[k] += v[l + k] * v[l + k];
    for (; l < n; l++)
        sum[0] += v[l] * v[l];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

static double sum_of(const double *v, size_t n) {
    double sum[4] = {0};
    size_t l = 0;
    for (; l + 4 <= n; l += 4)
        for (size_t k = 0; k < 4; k++)
            sum[k] += v[l + k];
    for (; l < n; l++)
        sum[0] += v[l];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* A chain of sums, four terms a step: only one addition of the four waits for the step before. */
static void chain_run(double *chain, double *squares, double *sums, const double *v, size_t n) {
    double s = *chain, q[4] = {0}, a[4] = {0};
    size_t l = 0;
    for (; l + 4 <= n; l += 4) {
        double t1 = v[l] + v[l + 1], t2 = t1 + v[l + 2], t3 = t1 + (v[l + 2] + v[l + 3]);
        double p[4] = {s + v[l], s + t1, s + t2, s + t3};
        for (size_t k = 0; k < 4; k++) {
            q[k] += p[k] * p[k];
            a[k] += p[k];
        }
        s = p[3];
    }
    for (; l < n; l++) {
        s += v[l];
        q[0] += s * s;
        a[0] += s;
    }
    *chain = s;
    *squares += (q[0] + q[1]) + (q[2] + q[3]);
    *sums += (a[0] + a[1]) + (a[2] + a[3]);
}

/* The common case: a plain sum of ordinary terms. Returns how many it took; 0 when a partial sum
 * may be too large. */
static size_t row_sum_run(struct row *r, const struct reg *term, size_t from, size_t n) {
    const struct fold *f = r->f;
    double s = r->s, q = r->q, a = r->a;
    size_t room = CHAIN - r->length, take = n - from < room ? n - from : room;
    chain_run(&s, &q, &a, term->v + from, take);
    if (!(q <= f->most * f->most))
        return 0;
    double squares = squares_of(term->v + from, take);
    r->s = s;
    r->q = q;
    r->a = a;
    r->w += squares;
    r->e += f->relative2 * squares;
    r->last = term->v[from + take - 1];
    r->run = 0;
    if (!f->exact)
        r->e += sum_of(term->e + from, take);
    r->count += (double)take;
    r->length += take;
    if (r->length == CHAIN)
        row_carry(r);
    return take;
}

/* Terms that are lost in the sum they come to, or round like the one before them: few enough not to
 * matter? In groups, which become vectors. */
static bool terms_vary(const double *v, size_t n, double sum) {
    enum { GROUP = 8, RARE = 16 };
    double sums[GROUP] = {fabs(sum)}, odd[GROUP] = {0}, s = 0, all = 0;
    size_t l = 0;
    for (; l + GROUP <= n; l += GROUP)
        for (size_t k = 0; k < GROUP; k++)
            sums[k] += fabs(v[l + k]);
    for (; l < n; l++)
        sums[0] += fabs(v[l]);
    for (size_t k = 0; k < GROUP; k++)
        s += sums[k];
    for (l = 1; l + GROUP <= n; l += GROUP)
        for (size_t k = 0; k < GROUP; k++) {
            double same = fabs(v[l + k] - v[l + k - 1]) * 4, least = fabs(v[l + k]);
            odd[k] += (same < least ? same : least) <= 0x1p-22 * s ? 1.0 : 0.0;
        }
    for (; l < n; l++)
        odd[0] += fold_loses(v[l], s) || fold_repeats(v[l], v[l - 1], s) ? 1.0 : 0.0;
    for (size_t k = 0; k < GROUP; k++)
        all += odd[k];
    return all * RARE <= (double)n;
}

void row_add_all(struct row *r, const struct reg *term, const struct reg *guard, size_t n,
                 double at) {
    bool sum = r->f->op == REDUCTION_SUM || r->f->op == REDUCTION_MEAN;
    bool fast = sum && !guard && !r->f->track_peak && terms_vary(term->v, n, r->s) &&
                vector_ordinary(term, !r->f->exact, r->f->most, n);
    for (size_t l = 0; l < n;) {
        size_t took = fast ? row_sum_run(r, term, l, n) : 0;
        if (took == 0)
            row_add(r, term, guard, l, at + (double)l);
        l += took ? took : 1;
    }
}

void row_result(const struct row *r, double *v, double *e) {
    const struct fold *f = r->f;
    *v = r->s;
    *e = r->e;
    if (f->op == REDUCTION_SUM || f->op == REDUCTION_MEAN) {
        double bias = f->truncation * (r->bias + (double)r->length * r->before + r->a);
        *e += fold_chain(f, (double)r->length, r->s, r->q, r->w);
        if (r->full) {
            *v += r->base_s;
            *e += r->base_e + (r->length ? f->unit2 * *v * *v : 0);
        }
        *e += bias * bias + r->doubt + fold_lost(f, r->lost);
    }
    fold_finish(f, r->count, r->doubts, r->at, r->seen, v, e);
}
