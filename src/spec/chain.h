/* Terms folded into one result, with the error of an honest evaluation order. Read by two compilers
 * (spec/shared.h): nest.c folds blocks of lanes, the oracle (assets/oracle/fold.cuh) the terms of
 * one result in each thread.
 *
 * The order is blocked: chains of at most CHAIN terms, and their results added in pairs. Along a
 * chain every partial sum s is rounded, each rounding costing u²·s². Two orders count: the one the
 * terms came in, whose partial sums were there to see, and a random one, where the expected squares
 * follow from the sum S and the sum of squares W of n terms: n·(S²/3 + W/6). A kernel may meet a
 * large term early that we met late. On signed data both stay small.
 * Roundings are independent, but for equal terms in a row, which round the same way again and
 * again: these add up before they are squared. A term of 0 costs nothing. The terms' own errors are
 * independent too, but for terms that are equal: log(x) of the same x is off by the same amount
 * each time. Of the value that repeats most these errors add up (`alike`).
 *
 * Sums of products in a tensor-core class add the rounding of their operands to each term, and a
 * bias for an accumulator that truncates: proportional to the sum of all partial sums, which has
 * the sign of what it takes away from.
 *
 * The fp64 value itself is summed in the same order, so its own error is far below any estimate. */
#ifndef SPEC_CHAIN_H
#define SPEC_CHAIN_H

#include "spec/value.h"

enum { CHAIN = 1024, CHAIN_LEVELS = 48 };

/* How terms are folded. The host hands it to the device as it is. */
struct fold {
    int64_t op;       /* enum reduction */
    int64_t unjudged; /* nothing can be said about a result, unless a NaN is among its terms */
    double relative2; /* variance of a term, in units of its square, beside its own */
    double unit2, least2, truncation, worst;
    double most;  /* the largest magnitude that counts */
    bool integer; /* terms are integers */
    bool product; /* a sum of products */
    /* The rest is the evaluator's own (nest.c). */
    bool exact;  /* the terms' own variances are 0 */
    bool masked; /* some terms may be left out */
    bool track_peak;
};

/* What was seen among the terms. */
enum {
    SEEN_NAN = 1,       /* that was put in */
    SEEN_UNDEFINED = 2, /* a variance without end */
    SEEN_INFINITE = 4,
    SEEN_OVERFLOW = 8,  /* a partial result beyond `most` */
    SEEN_UNJUDGED = 16, /* by the fold of a segment, which whoever joins them is not told of */
};

/* The value that most of the terms have, as far as one pass can tell. */
struct alike {
    double value, error; /* error: the variance of one such term */
    double terms;        /* how many there are */
    double last, run;    /* the last term, and how many like it came in a row */
};

/* The chain at hand. `count`, `doubt`, `doubts`, `at`, `lost`, `alike` and `seen` are of all
 * chains. */
struct chain {
    double sum, variance; /* variance: of the terms */
    double partial_sq;    /* squares of partial sums, equal terms together */
    double partial_sum;   /* partial sums, where accumulators truncate */
    double term_sq;       /* squares of terms */
    double last, run;     /* the last term; partial sums since it first came */
    double lost;          /* terms too small for their sum */
    double count;
    double doubt, doubts; /* variance of, and number of, terms that may or may not be selected */
    double at;            /* argmax: where */
    struct alike alike;
    int64_t length;
    int seen;
};

/* The chains before: results of 2^k of them each, added like the digits of a number. */
struct level {
    double sum, variance;
};
struct chains {
    double sum, variance; /* of all of them */
    double before, bias;  /* sums of the chains, and of all partial sums, in order */
    int64_t full;         /* levels in use: the number of chains */
    struct level *level;
    int64_t levels;
};

/* ---- extremes ---- */

SHARED bool fold_is_extreme(int64_t op) {
    return op == REDUCTION_MAX || op == REDUCTION_MIN || op == REDUCTION_ARGMAX ||
           op == REDUCTION_ARGMIN;
}

SHARED double fold_wanted(int64_t op) {
    return op == REDUCTION_MAX || op == REDUCTION_ARGMAX ? 1 : -1;
}

SHARED double fold_first(int64_t op) {
    return fold_is_extreme(op) ? -INFINITY * fold_wanted(op) : op == REDUCTION_PROD ? 1 : 0;
}

/* A term that may be the largest as well as the one that was chosen. An open infinity may be NaN,
 * which is the largest and the least there is. */
SHARED bool fold_ties(double worst, struct value best, struct value term) {
    if (isinf(term.e) || isinf(best.e) || is_open(term))
        return true;
    return !isnan(best.v) && value_within(best.v - term.v, best.e + term.e, worst);
}

/* The better of (sum, variance) and a term takes their place. True: the term does. */
SHARED bool fold_extreme(const struct fold *f, double *sum, double *variance, struct value t,
                         bool doubtful) {
    double want = fold_wanted(f->op);
    bool better = want * t.v > want * *sum || (isnan(t.v) && !isnan(*sum));
    double other = better ? *variance : t.e, chosen = better ? t.e : *variance;
    if (doubtful) { /* with it or without it? */
        *variance = better ? INFINITY : *variance;
        return false;
    }
    if (is_open(t))
        chosen = f->op == REDUCTION_MAX || f->op == REDUCTION_MIN ? INFINITY : chosen;
    else if (other > chosen && fold_ties(f->worst, value_of(*sum, *variance), t))
        chosen = other;
    if (are_opposite_zeros(*sum, t.v) && chosen < f->least2)
        chosen = f->least2;
    *variance = chosen;
    *sum = better ? t.v : *sum;
    return better;
}

/* ---- sums and products ---- */

/* SEEN_… of a term; 0 when it is ordinary. */
SHARED int fold_see(const struct fold *f, struct value t) {
    if (is_ordinary(t, f->most))
        return 0;
    if (isinf(t.e))
        return SEEN_UNDEFINED;
    return isnan(t.v) ? SEEN_NAN : isinf(t.v) ? SEEN_INFINITE : SEEN_OVERFLOW;
}

/* The same of a term that a guard has selected, or may have. Where that is doubtful, a NaN or an
 * infinity shows in one kernel and not in another. */
SHARED int fold_see_guarded(const struct fold *f, struct value t, struct value guard) {
    if (guard.e > 0 && !isfinite(t.v))
        return SEEN_UNDEFINED;
    return guard.v != 0 ? fold_see(f, t) : 0;
}

SHARED void chain_note_partial(struct chain *c, const struct fold *f, double partial) {
    if (fabs(partial) > f->most && !c->seen)
        c->seen |= SEEN_OVERFLOW;
}

/* A term v that makes the sum s: it is lost, or it rounds like the term before it. */
SHARED bool term_is_lost(double v, double s) {
    return fabs(v) <= 0x1p-22 * fabs(s);
}

SHARED bool term_repeats(double v, double last, double s) {
    return fabs(v - last) <= 0x1p-24 * fabs(s);
}

/* Adds a term, but for its variance, and counts nothing. Without branches. */
SHARED void chain_step(struct chain *c, double v) {
    double s = c->sum + v, run = term_repeats(v, c->last, s) ? c->run : 0;
    bool lost = term_is_lost(v, s);
    c->sum = s;
    c->partial_sq += lost ? 0 : s * s + 2 * s * run;
    c->run = lost ? run : run + s;
    c->lost += lost ? v : 0;
    c->last = v;
    c->term_sq += v * v;
}

/* A term that is known no worse than by a few roundings of its own matters less than the additions:
 * only others are counted. */
SHARED bool alike_takes(double unit2, struct value t) {
    return t.e > 16 * unit2 * t.v * t.v;
}

/* Without branches. */
SHARED void alike_note(struct alike *a, const struct fold *f, struct value t) {
    bool counts = alike_takes(f->unit2, t);
    bool same = t.v == a->value;
    double longer = a->run + 1, more = a->terms + 1;
    double run = t.v == a->last ? longer : 1, terms = same ? more : a->terms;
    bool most = run > terms;
    a->run = counts ? run : a->run;
    a->last = counts ? t.v : a->last;
    terms = most ? run : terms;
    a->value = (counts & most) ? t.v : a->value;
    a->error = (counts & (most | same)) ? t.e : a->error;
    a->terms = counts ? terms : a->terms;
}

/* Those of other terms of the same result. */
SHARED void alike_join(struct alike *a, const struct alike *b) {
    if (a->value == b->value)
        a->terms += b->terms;
    else if (b->terms > a->terms)
        *a = *b;
}

/* What equal errors add to the variance of a sum in which each was counted alone. */
SHARED double alike_variance(const struct alike *a) {
    return a->terms > 1 ? a->error * a->terms * (a->terms - 1) : 0;
}

SHARED struct value product_step(const struct fold *f, struct value p, struct value t) {
    double v = p.v * t.v;
    return value_of(v, t.v * t.v * p.e + p.v * p.v * t.e + f->unit2 * v * v +
                           (v == 0 ? 0 : f->least2));
}

/* The variance of n additions. */
SHARED double chain_variance(const struct fold *f, double n, const struct chain *c) {
    return f->unit2 * (c->partial_sq + n * (c->sum * c->sum / 3 + c->term_sq / 6));
}

SHARED double lost_variance(const struct fold *f, double lost) {
    return f->unit2 * 0x1p48 * lost * lost;
}

/* ---- one result ---- */

SHARED struct chain chain_start(const struct fold *f) {
    struct chain c = {0};
    c.sum = fold_first(f->op);
    return c;
}

SHARED struct chains chains_start(struct level *level, int64_t levels) {
    struct chains b = {0};
    b.level = level;
    b.levels = levels;
    return b;
}

/* The results of 2^k chains, which come in order of falling k, join those before them like a
 * carry. */
SHARED_APART void chains_join(struct chains *b, const struct fold *f, double sum, double variance) {
    int64_t k = 0;
    for (; b->full >> k & 1; k++) {
        sum += b->level[k].sum;
        variance += b->level[k].variance + f->unit2 * sum * sum;
    }
    b->level[k].sum = sum;
    b->level[k].variance = variance;
    b->full++;
    for (k++; k < b->levels; k++)
        if (b->full >> k & 1) {
            sum += b->level[k].sum;
            variance += b->level[k].variance + f->unit2 * sum * sum;
        }
    b->sum = sum;
    b->variance = variance;
}

/* The chain is as long as it may be, and another begins. */
SHARED_APART void chain_close(struct chain *c, struct chains *b, const struct fold *f) {
    double n = (double)c->length;
    b->bias += n * b->before + c->partial_sum;
    b->before += c->sum;
    chains_join(b, f, c->sum, c->variance + chain_variance(f, n, c));
    chain_note_partial(c, f, b->sum);
    c->sum = c->variance = c->partial_sq = c->partial_sum = c->term_sq = c->run = 0;
    c->length = 0;
}

/* Copies are given away, so that on a GPU chain and fold stay in registers. */
SHARED void chain_sum(struct chain *c, struct chains *b, const struct fold *f, struct value t) {
    alike_note(&c->alike, f, t);
    chain_step(c, t.v);
    c->variance += t.e + f->relative2 * t.v * t.v;
    c->partial_sum += c->sum;
    chain_note_partial(c, f, c->sum);
    if (++c->length == CHAIN) {
        struct chain full = *c;
        struct fold own = *f;
        chain_close(&full, b, &own);
        *c = full;
    }
}

/* A term that a guard has selected, or may have; at: its place, for argmax. */
SHARED void chain_add(struct chain *c, struct chains *b, const struct fold *f, struct value t,
                      struct value guard, double at) {
    bool doubtful = guard.e > 0;
    if (fold_is_extreme(f->op)) {
        if (fold_extreme(f, &c->sum, &c->variance, t, doubtful) || c->count == 0)
            c->at = at; /* the first is the best so far, be it the least there is */
        c->count += 1;
        return;
    }
    if (doubtful) {
        c->doubt += t.v * t.v;
        c->doubts += 1;
    }
    c->seen |= fold_see_guarded(f, t, guard);
    if (guard.v == 0)
        return;
    c->count += 1;
    if (f->op == REDUCTION_PROD) {
        struct value p = product_step(f, value_of(c->sum, c->variance), t);
        c->sum = p.v;
        c->variance = p.e;
        chain_note_partial(c, f, p.v);
        return;
    }
    chain_sum(c, b, f, t);
}

/* ---- results ---- */

/* What the terms seen make of a result. Of an infinite term honest kernels may make NaN: by
 * compensation, by splitting the operands of products, or times a product that underflowed. */
SHARED struct value settle_result(int seen, struct value d) {
    if (seen & SEEN_NAN)
        return value_of(NAN, 0);
    if (seen & SEEN_UNDEFINED || isnan(d.v))
        return value_of(d.v, INFINITY);
    if (seen & SEEN_INFINITE)
        return value_of(d.v, 1);
    return value_of(d.v, seen & SEEN_OVERFLOW ? INFINITY : d.e);
}

SHARED struct value fold_finish(const struct fold *f, double count, double doubts, double at,
                                int seen, struct value d) {
    if (f->op == REDUCTION_ARGMAX || f->op == REDUCTION_ARGMIN)
        return value_of(at, count > 0 ? 0 : INFINITY);
    if (fold_is_extreme(f->op))
        return d;
    if (f->op == REDUCTION_PROD && doubts > 0)
        d.e = INFINITY;
    if (f->op == REDUCTION_MEAN) {
        d.v /= count;
        d.e = (d.e + doubts * d.v * d.v) / (count * count) + f->unit2 * d.v * d.v;
        d.e = count == 0 ? INFINITY : d.e;
    }
    /* Terms near the smallest numbers may all round the same way. */
    if (d.e > 0 && d.e <= DOUBLE_MOST && f->unit2 > 0)
        d.e += f->least2 * (f->op == REDUCTION_MEAN ? 1 : count * count);
    d = settle_result(seen, d);
    if (!(seen & SEEN_NAN) && (f->unjudged || seen & SEEN_UNJUDGED))
        d.e = INFINITY;
    return d;
}

/* The sum of all chains, with the variance of their additions. */
SHARED struct value chains_sum(const struct chain *c, const struct chains *b,
                               const struct fold *f) {
    struct value d = value_of(c->sum, c->variance + chain_variance(f, (double)c->length, c));
    if (b->full) {
        d.v += b->sum;
        d.e += b->variance + (c->length ? f->unit2 * d.v * d.v : 0);
    }
    return d;
}

SHARED double chains_bias(const struct chain *c, const struct chains *b) {
    return b->bias + (double)c->length * b->before + c->partial_sum;
}

/* The result of the terms so far. */
SHARED struct value chain_result(const struct chain *c, const struct chains *b,
                                 const struct fold *f) {
    struct value d = value_of(c->sum, c->variance);
    if (f->op == REDUCTION_SUM || f->op == REDUCTION_MEAN) {
        double bias = f->truncation * chains_bias(c, b);
        d = chains_sum(c, b, f);
        d.e += bias * bias + c->doubt + lost_variance(f, c->lost) + alike_variance(&c->alike);
    }
    return fold_finish(f, c->count, c->doubts, c->at, c->seen, d);
}

/* ---- without errors: definitions of inputs ---- */

struct plain_fold {
    double value, best, terms; /* best: of argmax and argmin */
};

SHARED struct plain_fold plain_start(int64_t op) {
    struct plain_fold f = {0};
    f.value = op == REDUCTION_ARGMAX || op == REDUCTION_ARGMIN ? NAN : fold_first(op);
    return f;
}

SHARED void plain_add(struct plain_fold *f, int64_t op, double v, double at) {
    bool better = f->terms == 0 || (isnan(v) && !isnan(f->best)) ||
                  (op == REDUCTION_ARGMAX ? v > f->best : v < f->best);
    f->terms += 1;
    if (op == REDUCTION_PROD)
        f->value *= v;
    else if (op == REDUCTION_MAX)
        f->value = larger_of(f->value, v);
    else if (op == REDUCTION_MIN)
        f->value = smaller_of(f->value, v);
    else if (op == REDUCTION_SUM || op == REDUCTION_MEAN)
        f->value += v;
    else
        f->value = better ? at : f->value;
    f->best = better ? v : f->best;
}

SHARED double plain_result(const struct plain_fold *f, int64_t op) {
    return op == REDUCTION_MEAN ? f->value / f->terms : f->value;
}

#ifndef __CUDACC__
/* How the terms of a reduction are folded, whatever the data; some may be left out (`partial`): one
 * kernel skips them, another multiplies by 0. */
struct fold fold_of(const struct task *t, const struct expr *reduce, bool *partial);
#endif

#endif
