/* Chooses how a tensor of results is evaluated, compiles it for that, runs its loops and stores the
 * results.
 *
 * Sums of products of two inputs (matrix products and their like, whose terms are by far the most
 * that a reference has) come straight from memory. Where the lanes of a reduction in columns run
 * along one factor, element by element, and the other is the same in all of them, the innermost
 * loop needs no program: both tensors are converted to fp64 once, and a run of terms is added with
 * the sums in registers. Terms, their order and every operation are those of the general way
 * (`columns`), and so are the bits of the results. */
#include "spec/nest.h"
#include "base/checked.h"
#include "base/parallel.h"
#include "base/wide.h"
#include "spec/bind.h"
#include "spec/bounds.h"
#include "spec/chain.h"
#include "spec/data.h"
#include "spec/pattern.h"
#include "spec/program.h"
#include "spec/scalar.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* Blocks of lanes are folded by the rules of chain.h. A `row` folds the terms of one result one
 * after the other; `columns` fold a term each into the results of all lanes. */
struct row {
    const struct fold *f;
    struct chain c;
    struct chains before;
    struct level level[CHAIN_LEVELS];
    double peak; /* the largest partial result of any order of the terms, where it is tracked */
};

/* The members of struct chain and struct chains, of all lanes. */
struct columns {
    const struct fold *f;
    double sum[LANES + LANES_PAD], variance[LANES + LANES_PAD];
    double partial_sq[LANES + LANES_PAD], partial_sum[LANES + LANES_PAD];
    double term_sq[LANES + LANES_PAD];
    double last[LANES + LANES_PAD], run[LANES + LANES_PAD], lost[LANES + LANES_PAD];
    struct {
        double value[LANES + LANES_PAD], error[LANES + LANES_PAD], terms[LANES + LANES_PAD];
        double last[LANES + LANES_PAD], run[LANES + LANES_PAD];
    } alike;
    double counted[LANES]; /* of `count`, before the chain */
    size_t length;
    struct {
        double sum[LANES + LANES_PAD], variance[LANES + LANES_PAD];
    } level[CHAIN_LEVELS];
    uint64_t full;
    double before[LANES + LANES_PAD], bias[LANES + LANES_PAD];
    double total; /* terms, where none is left out */
    double count[LANES + LANES_PAD], doubt[LANES + LANES_PAD], doubts[LANES + LANES_PAD],
        at[LANES + LANES_PAD];
    unsigned char odd[LANES]; /* needs another look: columns_look */
    unsigned char seen[LANES];
    double peak[LANES + LANES_PAD];
};

/* Rows: one result, term by term. Columns: a term each for the results of all lanes, in loops
 * without branches, so that they become vector arithmetic; what is out of the ordinary is found at
 * the end and looked at again. */

struct fold fold_of(const struct task *t, const struct expr *reduce, bool *partial) {
    const struct reduce *r = reduce->reduce;
    const struct expr *body = reduce->args[0];
    struct rules rules = rules_of(t->accuracy);
    size_t factors = 0, rounded = 0;
    bool integer = body->value_kind != VALUE_REAL && r->op != REDUCTION_MEAN;
    struct fold f = {.op = (int64_t)r->op,
                     .unit2 = integer ? 0 : rules.unit2,
                     .least2 = rules.least2,
                     .worst = rules.limits.worst,
                     .most = integer ? 0x1p53 : (double)FLT_MAX,
                     .integer = integer};
    pattern_count_rounded(t, body, reduce_vars(r), &factors, &rounded);
    f.product = (r->op == REDUCTION_SUM || r->op == REDUCTION_MEAN) && factors >= 2;
    if (f.product) {
        f.relative2 = rules.operand2 * (double)rounded;
        f.truncation = rules.truncation;
    }
    *partial = f.product && (r->guard || pattern_bounds_vary(r) || pattern_holds_pad(body));
    return f;
}

/* How far a partial result may come in some order of the terms. */
static double reach_of(const struct fold *f, double sofar, double v) {
    double m = fabs(v);
    if (!isfinite(m))
        return sofar;
    return f->op != REDUCTION_PROD ? sofar + m : sofar > 1 ? sofar * (m > 1 ? m : 1) : m;
}

static struct value guard_at(const struct reg *guard, size_t l) {
    return guard ? lane_of(guard, l) : value_of(1, 0);
}

/* ---- rows ---- */

static void row_start(struct row *r, const struct fold *f) {
    *r = (struct row){.f = f, .c = chain_start(f)};
    r->before = chains_start(r->level, CHAIN_LEVELS);
}

/* Lane l of a block of terms; guard: NULL, or says which count; at: its place, for argmax. */
static void row_add(struct row *r, const struct reg *term, const struct reg *guard, size_t l,
                    double at) {
    struct value t = lane_of(term, l), in = guard_at(guard, l);
    if (in.v == 0 && !(in.e > 0))
        return;
    if (r->f->exact && t.e <= DBL_MAX) /* its rounding is in relative2 */
        t.e = 0;
    if (r->f->track_peak && in.v != 0 && !fold_is_extreme(r->f->op))
        r->peak = reach_of(r->f, r->peak, t.v);
    chain_add(&r->c, &r->before, r->f, t, in, at);
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

/* Whether alike_note would take any of these terms: mostly it would not. */
WIDE static bool any_is_inexact(const struct fold *f, const struct reg *t, const struct reg *guard,
                                size_t from, size_t to) {
    double unit2 = f->unit2, some = 0;
    for (size_t l = from; l < to; l++)
        some = alike_takes(unit2, value_of(t->v[l], t->e[l])) && (!guard || guard->v[l] != 0)
                   ? 1
                   : some;
    return some != 0;
}

/* The common case: a plain sum of ordinary terms. Returns how many it took; 0 when a partial sum
 * may be too large. */
static size_t row_sum_run(struct row *r, const struct reg *term, size_t from, size_t n) {
    const struct fold *f = r->f;
    struct chain c = r->c;
    size_t room = CHAIN - (size_t)c.length, take = n - from < room ? n - from : room;
    chain_run(&c.sum, &c.partial_sq, &c.partial_sum, term->v + from, take);
    if (!(c.partial_sq <= f->most * f->most))
        return 0;
    double squares = squares_of(term->v + from, take);
    c.term_sq += squares;
    c.variance += f->relative2 * squares;
    c.last = term->v[from + take - 1];
    c.run = 0;
    if (!f->exact) {
        c.variance += sum_of(term->e + from, take);
        if (any_is_inexact(f, term, NULL, from, from + take))
            for (size_t l = from; l < from + take; l++)
                alike_note(&c.alike, f, lane_of(term, l));
    }
    c.count += (double)take;
    c.length += (int64_t)take;
    r->c = c;
    if (c.length == CHAIN)
        chain_close(&r->c, &r->before, f);
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
        odd[0] += term_is_lost(v[l], s) || term_repeats(v[l], v[l - 1], s) ? 1.0 : 0.0;
    for (size_t k = 0; k < GROUP; k++)
        all += odd[k];
    return all * RARE <= (double)n;
}

/* Lanes [0, n) in order. */
static void row_add_all(struct row *r, const struct reg *term, const struct reg *guard, size_t n,
                        double at) {
    bool sum = r->f->op == REDUCTION_SUM || r->f->op == REDUCTION_MEAN;
    bool fast = sum && !guard && !r->f->track_peak && terms_vary(term->v, n, r->c.sum) &&
                vector_ordinary(term, !r->f->exact, r->f->most, n);
    for (size_t l = 0; l < n;) {
        size_t took = fast ? row_sum_run(r, term, l, n) : 0;
        if (took == 0)
            row_add(r, term, guard, l, at + (double)l);
        l += took ? took : 1;
    }
}

/* The result of the terms so far. */
static struct value row_result(const struct row *r) {
    return chain_result(&r->c, &r->before, r->f);
}

/* ---- columns ---- */

static void columns_start(struct columns *c, const struct fold *f) {
    double first = fold_first(f->op);
    c->f = f;
    c->length = 0;
    c->full = 0;
    c->total = 0;
    for (size_t l = 0; l < LANES; l++)
        c->sum[l] = first;
    memset(c->variance, 0, sizeof c->variance);
    memset(c->partial_sq, 0, sizeof c->partial_sq);
    memset(c->partial_sum, 0, sizeof c->partial_sum);
    memset(c->term_sq, 0, sizeof c->term_sq);
    memset(c->last, 0, sizeof c->last);
    memset(c->run, 0, sizeof c->run);
    memset(c->lost, 0, sizeof c->lost);
    memset(&c->alike, 0, sizeof c->alike);
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

static struct chain chain_at(const struct columns *c, size_t l) {
    struct chain at = {.sum = c->sum[l],
                       .variance = c->variance[l],
                       .partial_sq = c->partial_sq[l],
                       .term_sq = c->term_sq[l],
                       .last = c->last[l],
                       .run = c->run[l],
                       .lost = c->lost[l]};
    return at;
}

/* What chain_step changes. */
static void chain_put(struct columns *restrict c, size_t l, struct chain at) {
    c->sum[l] = at.sum;
    c->partial_sq[l] = at.partial_sq;
    c->term_sq[l] = at.term_sq;
    c->last[l] = at.last;
    c->run[l] = at.run;
    c->lost[l] = at.lost;
}

static void note_reach(struct columns *c, const struct reg *t, const struct reg *guard, size_t n) {
    for (size_t l = 0; l < n && c->f->track_peak; l++)
        if (!guard || guard->v[l] != 0)
            c->peak[l] = reach_of(c->f, c->peak[l], t->v[l]);
}

static void note_odd(struct columns *c, size_t n) {
    double most2 = c->f->most * c->f->most;
    for (size_t l = 0; l < n; l++)
        c->odd[l] |= !(c->partial_sq[l] <= most2) || !(c->variance[l] <= DBL_MAX);
}

static void add_levels(struct columns *c, size_t k, size_t n) {
    double unit2 = c->f->unit2;
    for (size_t l = 0; l < n; l++) {
        c->sum[l] += c->level[k].sum[l];
        c->variance[l] += c->level[k].variance[l] + unit2 * c->sum[l] * c->sum[l];
    }
}

WIDE static void close_chain(struct columns *c, size_t n) {
    const struct fold *f = c->f;
    double length = (double)c->length;
    note_odd(c, n);
    for (size_t l = 0; l < n; l++) {
        double terms = f->masked ? c->count[l] - c->counted[l] : length;
        c->bias[l] += terms * c->before[l] + c->partial_sum[l];
        c->before[l] += c->sum[l];
        struct chain closed = chain_at(c, l);
        c->variance[l] += f->relative2 * closed.term_sq + chain_variance(f, terms, &closed);
        c->counted[l] = c->count[l];
        c->partial_sq[l] = c->partial_sum[l] = c->term_sq[l] = c->run[l] = 0;
    }
    c->length = 0;
}

/* The chain is as long as it may be: its result joins those of earlier chains like a carry. */
static void carry(struct columns *c, size_t n) {
    size_t k = 0;
    close_chain(c, n);
    for (; c->full >> k & 1; k++)
        add_levels(c, k, n);
    memcpy(c->level[k].sum, c->sum, n * sizeof *c->sum);
    memcpy(c->level[k].variance, c->variance, n * sizeof *c->variance);
    c->full++;
    memset(c->sum, 0, n * sizeof *c->sum);
    memset(c->variance, 0, n * sizeof *c->variance);
}

__attribute__((always_inline)) static inline struct alike alike_at(const struct columns *c,
                                                                   size_t l) {
    return (struct alike){c->alike.value[l], c->alike.error[l], c->alike.terms[l], c->alike.last[l],
                          c->alike.run[l]};
}

__attribute__((always_inline)) static inline void alike_put(struct columns *restrict c, size_t l,
                                                            struct alike a) {
    c->alike.value[l] = a.value;
    c->alike.error[l] = a.error;
    c->alike.terms[l] = a.terms;
    c->alike.last[l] = a.last;
    c->alike.run[l] = a.run;
}

WIDE static void note_alike(struct columns *restrict c, const struct reg *restrict t, size_t n) {
    const struct fold f = *c->f;
    for (size_t l = 0; l < n; l++) {
        struct alike a = alike_at(c, l);
        alike_note(&a, &f, value_of(t->v[l], t->e[l]));
        alike_put(c, l, a);
    }
}

WIDE static void sum_all(struct columns *restrict c, const struct reg *restrict t, size_t n) {
    for (size_t l = 0; l < n; l++) {
        struct chain at = chain_at(c, l);
        chain_step(&at, t->v[l]);
        chain_put(c, l, at);
    }
    if (!c->f->exact)
        for (size_t l = 0; l < n; l++)
            c->variance[l] += t->e[l];
    if (!c->f->exact && any_is_inexact(c->f, t, NULL, 0, n))
        note_alike(c, t, n);
    if (c->f->truncation > 0)
        for (size_t l = 0; l < n; l++)
            c->partial_sum[l] += c->sum[l];
}

/* A product that is summed, without a pass of its own; lone: x is the same in all lanes. */
WIDE static void sum_products(struct columns *restrict c, const double *restrict x,
                              const double *restrict y, bool lone, size_t n) {
    double first = x[0];
    if (lone)
        for (size_t l = 0; l < n; l++) {
            double v = first * y[l], s = c->sum[l] + v;
            c->sum[l] = s;
            c->partial_sq[l] += v == 0 ? 0 : s * s;
            c->term_sq[l] += v * v;
        }
    else
        for (size_t l = 0; l < n; l++) {
            double v = x[l] * y[l], s = c->sum[l] + v;
            c->sum[l] = s;
            c->partial_sq[l] += v == 0 ? 0 : s * s;
            c->term_sq[l] += v * v;
        }
    if (c->f->truncation > 0)
        for (size_t l = 0; l < n; l++)
            c->partial_sum[l] += c->sum[l];
}

/* So many terms of all lanes have been summed by other means: into sum, partial_sq, term_sq and,
 * where accumulators truncate, partial_sum; no more than the chain has room for. */
static void columns_added(struct columns *c, size_t terms, size_t n) {
    c->total += (double)terms;
    c->length += terms;
    if (c->length == CHAIN)
        carry(c, n);
}

/* The term is x·y, either of which may be the same in all lanes (its lane 0 counts). */
static void columns_add_product(struct columns *c, const struct reg *x, bool x_lone,
                                const struct reg *y, bool y_lone, size_t n) {
    if (y_lone)
        sum_products(c, y->v, x->v, true, n);
    else
        sum_products(c, x->v, y->v, x_lone, n);
    columns_added(c, 1, n);
}

/* A lane whose term is left out adds 0, and remembers the term before. */
WIDE static void sum_some(struct columns *restrict c, const struct reg *restrict t,
                          const struct reg *restrict guard, size_t n) {
    bool exact = c->f->exact;
    for (size_t l = 0; l < n; l++) {
        bool in = guard->v[l] != 0;
        struct chain was = chain_at(c, l), at = was;
        chain_step(&at, in ? t->v[l] : 0);
        at.run = in ? at.run : was.run;
        at.last = in ? at.last : was.last;
        chain_put(c, l, at);
        c->partial_sum[l] += in ? at.sum : 0;
        c->variance[l] += in && !exact ? t->e[l] : 0;
        c->count[l] += in ? 1 : 0;
    }
    if (!exact && any_is_inexact(c->f, t, guard, 0, n))
        for (size_t l = 0; l < n; l++) {
            struct alike a = alike_at(c, l);
            if (guard->v[l] != 0)
                alike_note(&a, c->f, lane_of(t, l));
            alike_put(c, l, a);
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
        if (guard && guard->v[l] == 0)
            continue;
        struct value p = product_step(f, value_of(c->sum[l], c->variance[l]),
                                      value_of(t->v[l], f->exact ? 0 : t->e[l]));
        c->sum[l] = p.v;
        c->variance[l] = p.e;
        c->partial_sq[l] = c->partial_sq[l] > p.v * p.v ? c->partial_sq[l] : p.v * p.v;
        c->count[l]++;
    }
    if (guard)
        note_doubts(c, t, guard, n);
    note_reach(c, t, guard, n);
}

WIDE static void extreme_exact(struct columns *restrict c, const double *restrict v, double want,
                               size_t n) {
    double least2 = c->f->least2;
    for (size_t l = 0; l < n; l++) {
        bool better = (want * v[l] > want * c->sum[l]) | (v[l] != v[l]);
        double variance = better ? 0 : c->variance[l];
        c->variance[l] = are_opposite_zeros(c->sum[l], v[l]) ? least2 : variance;
        c->sum[l] = better ? v[l] : c->sum[l];
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
        struct value in = guard_at(guard, l), x = value_of(t->v[l], f->exact ? 0 : t->e[l]);
        if (in.v == 0 && !(in.e > 0))
            continue;
        if (fold_extreme(f, &c->sum[l], &c->variance[l], x, in.e > 0) || c->count[l] == 0)
            c->at[l] = at;
        c->count[l]++;
    }
}

static void columns_add(struct columns *c, const struct reg *term, const struct reg *guard,
                        size_t n, double at) {
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
            memcpy(c->sum, c->level[k].sum, n * sizeof *c->sum);
            memcpy(c->variance, c->level[k].variance, n * sizeof *c->variance);
        }
        more = true;
    }
    for (size_t l = 0; l < n; l++) {
        double bias = f->truncation * c->bias[l];
        struct alike a = alike_at(c, l);
        c->variance[l] +=
            bias * bias + c->doubt[l] + lost_variance(f, c->lost[l]) + alike_variance(&a);
    }
}

static bool columns_close(struct columns *c, size_t n) {
    bool ordinary = true;
    if (fold_is_extreme(c->f->op))
        return true;
    if (c->f->op != REDUCTION_PROD)
        close_sum(c, n);
    else
        note_odd(c, n);
    for (size_t l = 0; l < n; l++) {
        c->odd[l] |= !(fabs(c->sum[l]) <= c->f->most) || !(c->variance[l] <= DBL_MAX);
        ordinary &= !c->odd[l];
        c->partial_sq[l] =
            c->f->op == REDUCTION_PROD ? 1 : 0; /* partial results of the second look */
    }
    return ordinary;
}

static void columns_look(struct columns *c, const struct reg *term, const struct reg *guard,
                         size_t n) {
    for (size_t l = 0; l < n; l++) {
        struct value in = guard_at(guard, l);
        double v = term->v[l];
        if (!c->odd[l] || (in.v == 0 && !(in.e > 0)))
            continue;
        c->seen[l] |= (unsigned char)fold_see_guarded(c->f, lane_of(term, l), in);
        if (in.v == 0)
            continue;
        c->partial_sq[l] = c->f->op == REDUCTION_PROD ? c->partial_sq[l] * v : c->partial_sq[l] + v;
        if (!c->seen[l] && !(fabs(c->partial_sq[l]) <= c->f->most))
            c->seen[l] |= SEEN_OVERFLOW;
    }
}

/* Combines what there is. True: every lane is ordinary; otherwise the same terms, settled, must
 * all be shown to columns_look before the results are taken. */
static void columns_result(struct columns *c, double *v, double *e, size_t n) {
    const struct fold *f = c->f;
    for (size_t l = 0; l < n; l++) {
        double count = f->masked ? c->count[l] : c->total;
        struct value d = fold_finish(f, count, c->doubts[l], c->at[l], c->seen[l],
                                     value_of(c->sum[l], c->variance[l]));
        v[l] = d.v;
        e[l] = d.e;
    }
}

/* A run of terms, one for each lane: x[t·x_step] · y[t·y_step + lane]. Lanes are taken in groups: y
 * can be read that far past its end. */
enum { PRODUCTS_GROUP = 8 };
struct products {
    const double *x, *y;
    int64_t x_step, y_step;
    size_t terms;
};

/* Both tensors as doubles, on the heap. NULL: the general way. */
struct contraction {
    double *x, *y;
};

/* ---- what becomes of a result when it is stored ----
 *
 * An output's value stays the fp64 one and its variance becomes an estimate, with what storing it
 * in its type costs; a typed let is rounded to its type.
 *
 * Results come in blocks. Floats well inside their type are finished in vectors; what is out of the
 * ordinary goes one by one. */

static double output_estimate(const struct finish *f, struct value *x) {
    double lo, hi;
    if (dtype_info(f->dtype)->kind == 'f')
        return float_estimate(f->limits, f->dtype, x);
    dtype_limits(f->dtype, &lo, &hi);
    return integer_estimate(*x, lo, hi);
}

static struct value let_value(const struct finish *f, struct value x) {
    double lo, hi;
    if (dtype_info(f->dtype)->kind == 'f')
        return let_float(f->limits, f->dtype, x);
    dtype_limits(f->dtype, &lo, &hi);
    return let_integer(x, lo, hi);
}

/* float_estimate of fp32 well inside its range, without branches; returns how many may lie too near
 * the end of their type, or are no numbers, whose estimates mean nothing. */
WIDE static uint64_t f32_estimates(const double *restrict v, const double *restrict variance,
                                   size_t n, double worst, double rms, double edge,
                                   double *restrict out) {
    const uint64_t least = 1023 - 126;
    uint64_t odd = 0;
    for (size_t l = 0; l < n; l++) {
        uint64_t field = double_bits(v[l]) >> 52 & 0x7ff;
        uint64_t half = ((field < least ? least : field) - 24) << 52;
        double share = double_of_bits(half) / rms;
        bool exact = (variance[l] == 0) & ((double)(float)v[l] == v[l]);
        double estimate = sqrt(variance[l] + share * share);
        out[l] = (exact ? 0.0 : 1.0) * estimate;
        odd += fabs(v[l]) < edge - worst * estimate ? 0 : 1;
    }
    return odd;
}

static void f32_outputs(const struct finish *f, const double *v, const double *e, size_t n,
                        double *value, double *error) {
    double edge = round_overflow(DTYPE_F32);
    bool odd = f32_estimates(v, e, n, f->limits.worst, f->limits.rms, edge, error) > 0;
    memcpy(value, v, n * sizeof *v);
    for (size_t l = 0; l < n && odd; l++)
        if (!(fabs(v[l]) < edge - f->limits.worst * sqrt(e[l]))) {
            struct value x = value_of(v[l], e[l]);
            error[l] = output_estimate(f, &x);
            value[l] = x.v;
        }
}

/* Values v and variances e of n results as they are stored: an output's variance becomes its
 * estimate, a typed let is rounded. None of the arrays overlap. */
static void finish_results(const struct finish *f, const double *v, const double *e, size_t n,
                           double *value, double *error) {
    if (f->output && f->dtype == DTYPE_F32) {
        f32_outputs(f, v, e, n, value, error);
        return;
    }
    memcpy(value, v, n * sizeof *v);
    memcpy(error, e, n * sizeof *e);
    for (size_t l = 0; l < n && (f->output || f->typed_let); l++) {
        struct value x = value_of(v[l], e[l]);
        if (f->output)
            x.e = output_estimate(f, &x);
        else
            x = let_value(f, x);
        value[l] = x.v;
        error[l] = x.e;
    }
}

#define MOST_ELEMENTS ((int64_t)32 << 20) /* of both tensors */

static bool is_plain_read(const struct instr *i) {
    return i->op == OP_READ && i->type == VALUE_REAL && i->exact && i->nplaces == 0 && !i->padded;
}

/* Says of a nest that is about to be scheduled along variable `lane` whether this way is open. */
static void contract_find(struct nest *n, int lane) {
    const struct instr *i = &n->p.code[n->p.result];
    bool sum = n->reduce && (n->reduce->op == REDUCTION_SUM || n->reduce->op == REDUCTION_MEAN);
    bool product = i->op == OP_NODE && i->kind == EXPR_MUL && i->type == VALUE_REAL;
    if (!sum || !product || n->mode != NEST_COLUMNS || lane < 0 || n->p.guard >= 0 || !n->nloops)
        return;
    const struct instr *x = &n->p.code[i->src[0]], *y = &n->p.code[i->src[1]];
    if (!is_plain_read(x) || !is_plain_read(y))
        return;
    if (y->place.coef[lane] == 0) {
        const struct instr *swap = x;
        x = y;
        y = swap;
    }
    n->factor[0] = (struct factor){x->ref, x->place};
    n->factor[1] = (struct factor){y->ref, y->place};
    n->contracts = x->place.coef[lane] == 0 && y->place.coef[lane] == 1;
}

/* A bound that does not fit 64 bits has been refused when the task was bound; 0 leaves no crash. */
static int64_t bound_at(const struct nest *n, const struct bound *b, const int64_t *at) {
    struct ranges r = {.in = n->in};
    struct range got;
    int64_t v;
    if (b->affine)
        return affine_at(&b->a, at, &v) ? v : 0;
    for (size_t k = 0; k < n->s->nvars; k++)
        r.index[k] = (struct range){at[k], at[k]};
    return range_of(&r, b->e, &got) == RANGE_OK ? got.lo : 0;
}

/* Roughly, where bounds of loops vary. */
static double contract_terms(const struct nest *n) {
    int64_t at[TASK_MAX_VARS] = {0};
    double terms = 1;
    for (size_t k = 0; k < n->naxes; k++) {
        at[n->axes[k].var] = n->axes[k].lo;
        terms *= (double)n->axes[k].n;
    }
    for (size_t k = 0; k < n->nloops; k++)
        terms *= (double)(bound_at(n, &n->loops[k].hi, at) - bound_at(n, &n->loops[k].lo, at));
    return terms;
}

static double *as_doubles(const struct content *from) {
    size_t count = (size_t)from->count;
    double *to = mem_try_resize(NULL, (count + PRODUCTS_GROUP) * sizeof *to);
    if (!to)
        return NULL;
    data_load(from->dtype, from->value, count, to);
    memset(to + count, 0, PRODUCTS_GROUP * sizeof *to);
    return to;
}

/* Makes nothing where the way is closed, where there are more elements to convert than terms to
 * add, or where there is no memory. */
static void contract_release(struct contraction *c) {
    mem_free(c->x);
    mem_free(c->y);
    *c = (struct contraction){0};
}

static void contract_init(struct contraction *c, const struct nest *n,
                          const struct content *contents) {
    *c = (struct contraction){0};
    if (!n->contracts)
        return;
    const struct content *x = &contents[n->factor[0].content], *y = &contents[n->factor[1].content];
    if (x->count > MOST_ELEMENTS || y->count > MOST_ELEMENTS - x->count ||
        (double)(x->count + y->count) > contract_terms(n))
        return;
    c->x = as_doubles(x);
    c->y = as_doubles(y);
    if (!c->x || !c->y)
        contract_release(c);
}

/* Where the first term's element is; all terms' lie, with those of the lanes after it, within. */
static bool place_all(const struct factor *f, const int64_t *at, int64_t step, int64_t terms,
                      int64_t lanes, const struct content *from, int64_t *first) {
    int64_t way, last, count = from->count;
    if (!affine_at(&f->place, at, first) || !sub_i64(*first, from->first, first) ||
        !mul_i64(step, terms - 1, &way) || !add_i64(*first, way, &last))
        return false;
    return *first >= 0 && last >= 0 && *first <= count - lanes && last <= count - lanes;
}

/* The first `terms` of the innermost loop from the point `at` on. False: some lie outside of a
 * tensor (program.h, invariant 3). */
static bool contract_at(const struct contraction *c, const struct nest *n,
                        const struct content *contents, const int64_t *at, int64_t terms,
                        size_t lanes, struct products *out) {
    const struct factor *x = &n->factor[0], *y = &n->factor[1];
    size_t var = n->loops[n->nloops - 1].var;
    int64_t x_first, y_first, x_step = x->place.coef[var], y_step = y->place.coef[var];
    if (!place_all(x, at, x_step, terms, 1, &contents[x->content], &x_first) ||
        !place_all(y, at, y_step, terms, (int64_t)lanes, &contents[y->content], &y_first))
        return false;
    *out = (struct products){c->x + x_first, c->y + y_first, x_step, y_step, (size_t)terms};
    return true;
}

/* ---- runs of products, in columns ----
 *
 * The sums of eight lanes stay in registers for a whole run; lanes beyond the last are computed
 * along and never read. */

enum { GROUP = PRODUCTS_GROUP };
typedef double group __attribute__((vector_size(8 * GROUP), aligned(8), may_alias));
typedef int64_t truth __attribute__((vector_size(8 * GROUP), aligned(8), may_alias));

_Static_assert(LANES % GROUP == 0, "no group leaves the columns");

WIDE static void add_group(struct columns *restrict c, const struct products *p, size_t l) {
    const double *x = p->x, *y = p->y + l;
    group s = *(group *)(c->sum + l), q = *(group *)(c->partial_sq + l),
          w = *(group *)(c->term_sq + l);
    group a = *(group *)(c->partial_sum + l);
    for (size_t t = 0; t < p->terms; t++) {
        group v = x[(int64_t)t * p->x_step] * *(const group *)(y + (int64_t)t * p->y_step);
        s += v;
        q += (group)((truth)(s * s) & (v != 0)); /* a term of 0 costs nothing */
        w += v * v;
        a += s;
    }
    *(group *)(c->sum + l) = s;
    *(group *)(c->partial_sq + l) = q;
    *(group *)(c->term_sq + l) = w;
    if (c->f->truncation > 0)
        *(group *)(c->partial_sum + l) = a;
}

static void products_add(struct columns *c, const struct products *p, size_t n) {
    struct products part = *p;
    for (size_t done = 0; done < p->terms; done += part.terms) {
        size_t room = CHAIN - c->length, rest = p->terms - done;
        part.x = p->x + (int64_t)done * p->x_step;
        part.y = p->y + (int64_t)done * p->y_step;
        part.terms = rest < room ? rest : room;
        for (size_t l = 0; l < n; l += GROUP)
            add_group(c, &part, l);
        columns_added(c, part.terms, n);
    }
}

/* How many terms of a lane: had a NaN for a factor; came out infinite; were no larger than counts;
 * and left the sum no larger. */
struct tally {
    truth named, endless, inside, held;
};

/* One comparison at a time: a compiler makes scalars of what combines them. */
WIDE static void look_group(const struct products *p, double most, size_t l, double *restrict q,
                            struct tally *restrict out) {
    const truth magnitude = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX,
                             INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
    const double *x = p->x, *y = p->y + l;
    group sum = *(group *)(q + l);
    truth named = {0}, endless = {0}, inside = {0}, held = {0};
    for (size_t t = 0; t < p->terms; t++) {
        double lone = x[(int64_t)t * p->x_step];
        group many = *(const group *)(y + (int64_t)t * p->y_step), v = lone * many;
        group either = lone != lone ? v : many;
        group size = (group)((truth)v & magnitude);
        sum += v;
        named -= either != either;
        endless -= size > DBL_MAX;
        inside -= size <= most;
        held -= (group)((truth)sum & magnitude) <= most;
    }
    *(group *)(q + l) = sum;
    *out = (struct tally){named, endless, inside, held};
}

/* A product is NaN by a factor, or of 0 and infinity and then undefined; infinite by a factor,
 * since finite ones of fp32's range cannot leave fp64's; or too large, and then undefined as well.
 */
static unsigned seen_of(const struct tally *y, size_t k, int64_t terms) {
    int64_t undefined = terms - y->named[k] - y->endless[k] - y->inside[k];
    return (y->named[k] ? SEEN_NAN : 0) | (undefined ? SEEN_UNDEFINED : 0) |
           (y->endless[k] ? SEEN_INFINITE : 0) | (y->held[k] < terms ? SEEN_OVERFLOW : 0);
}

/* columns_add_product and columns_look of every term. */
static void products_look(struct columns *c, const struct products *p, size_t n) {
    for (size_t l = 0; l < n; l += GROUP) {
        struct tally y;
        look_group(p, c->f->most, l, c->partial_sq, &y);
        for (size_t k = 0; k < GROUP && l + k < n; k++)
            if (c->odd[l + k])
                c->seen[l + k] |= (unsigned char)seen_of(&y, k, (int64_t)p->terms);
    }
}

/* How far partial sums may come in some order of the terms, and into peak[lane] how large their
 * factors are; all of them are finite. */
static WIDE void products_reach(struct columns *c, const struct products *p, size_t n,
                                double *peak) {
    for (size_t t = 0; t < p->terms; t++) {
        double x = fabs(p->x[(int64_t)t * p->x_step]);
        const double *y = p->y + (int64_t)t * p->y_step;
        for (size_t l = 0; l < n; l++) {
            double m = fabs(y[l]), most = m > x ? m : x;
            c->peak[l] += x * m;
            peak[l] = most > peak[l] ? most : peak[l];
        }
    }
}

/* ---- running the loops, on several threads ----
 *
 * An item is a block of lanes (points, columns), one result (rows) or one scan. Items are
 * independent of each other and of who runs them. */

enum pass { PASS_ADD, PASS_LOOK, PASS_TIES };

/* One thread's share. */
struct worker {
    const struct nest *n;
    struct machine m;
    struct columns *c;
    const struct contraction *direct;
    const struct by_index_lists *lists;
    struct row r;
    enum pass pass;
    unsigned pending; /* lowest level of what has changed since the body last ran */
    double far[LANES];
    double peak;
};

struct running {
    const struct nest *n;
    const struct content *contents;
    struct contraction direct;
    struct by_index_lists lists;
    double peak[PARALLEL_MOST];
    bool failed[PARALLEL_MOST];
};

static void changed(struct worker *w, unsigned level) {
    w->pending = level < w->pending ? level : w->pending;
}

/* Runs the guard and, unless no lane takes part, the body. */
static bool run_term(struct worker *w) {
    const struct program *p = &w->n->p;
    if (p->guard >= 0) {
        const struct reg *g = &w->m.regs[p->guard];
        machine_run(&w->m, 0, p->guard_end, w->pending);
        if (p->guard_uniform && g->v[0] == 0 && !(g->e[0] > 0))
            return false;
    }
    machine_run(&w->m, p->guard_end, p->n, w->pending);
    w->pending = p->inner;
    return true;
}

/* A pad reads beyond an edge, or only data say where it reads. As deep as the tree. */
static bool pads_beyond(struct scalar *at, const struct expr *e) {
    const struct expr *read = e->kind == EXPR_PAD ? e->args[0] : NULL;
    for (size_t k = 0; read && k < read->nargs; k++) {
        const struct expr *index = read->args[k];
        double v = pattern_is_pure(index) ? scalar_eval(at, index) : -1;
        if (!(v >= 0 && v < (double)at->in->tensors[read->ref].extent[k]))
            return true;
    }
    for (size_t k = 0; k < e->nargs && e->kind != EXPR_REDUCE; k++)
        if (pads_beyond(at, e->args[k]))
            return true;
    return false;
}

/* What lies beyond an edge counts for 0: one kernel multiplies it with a NaN, another skips it. */
static void doubt_padded(struct worker *w, struct reg *term) {
    const struct nest *n = w->n;
    bool columns = n->mode == NEST_COLUMNS;
    if (!n->pads)
        return;
    struct scalar at = {.in = n->in};
    memcpy(at.var, w->m.at, sizeof w->m.at);
    for (size_t l = 0; l < w->m.n; l++) {
        unsigned seen = columns ? w->c->seen[l] : (unsigned)w->r.c.seen;
        if (!isnan(term->v[l]) || seen & SEEN_NAN)
            continue;
        if (n->p.lane >= 0)
            at.var[n->p.lane] = w->m.at[n->p.lane] + (int64_t)l;
        if (pads_beyond(&at, n->body))
            term->e[l] = INFINITY;
    }
}

static const struct reg *guard_of(const struct worker *w) {
    return w->n->p.guard < 0 ? NULL : &w->m.regs[w->n->p.guard];
}

static int64_t place_of(const struct worker *w, size_t lane) {
    const struct target *t = &w->n->target;
    int64_t at = 0;
    BUG_IF(!affine_at(&t->place, w->m.at, &at));
    return w->n->p.lane < 0 ? at : at + (int64_t)lane * t->place.coef[w->n->p.lane];
}

static void store(const struct nest *n, int64_t at, struct value d, double peak) {
    const struct target *t = &n->target;
    if (t->finish) {
        finish_results(t->finish, &d.v, &d.e, 1, &t->value[at], &t->error[at]);
    } else {
        t->value[at] = d.v;
        t->error[at] = d.e;
    }
    if (t->peak)
        t->peak[at] = peak;
}

static void store_apart(const struct target *t, int64_t at, int64_t step, const double *v,
                        const double *e, size_t n) {
    double value[LANES], error[LANES];
    if (t->finish) {
        finish_results(t->finish, v, e, n, value, error);
        v = value;
        e = error;
    }
    for (size_t l = 0; l < n; l++) {
        t->value[at + (int64_t)l * step] = v[l];
        t->error[at + (int64_t)l * step] = e[l];
    }
}

static void store_together(const struct target *t, int64_t at, const double *v, const double *e,
                           size_t n) {
    if (t->finish) {
        finish_results(t->finish, v, e, n, t->value + at, t->error + at);
        return;
    }
    memcpy(t->value + at, v, n * sizeof *v);
    memcpy(t->error + at, e, n * sizeof *e);
}

/* Results of lanes [0, n), with the peaks of their making. */
static void store_lanes(struct worker *w, const double *v, const double *e) {
    const struct target *t = &w->n->target;
    int64_t at = place_of(w, 0), step = w->m.n > 1 ? place_of(w, 1) - at : 1;
    if (step == 1)
        store_together(t, at, v, e, w->m.n);
    else
        store_apart(t, at, step, v, e, w->m.n);
    for (size_t l = 0; l < w->m.n && w->n->p.track_peak; l++) {
        if (t->peak)
            t->peak[at + (int64_t)l * step] = w->m.peak[l];
        w->peak = w->m.peak[l] > w->peak ? w->m.peak[l] : w->peak;
    }
}

/* An index that is as good as the one chosen: a bit in the table, or a distance. */
static double note_tie(struct worker *w, int64_t place, double chosen, double at, double far) {
    const struct target *t = &w->n->target;
    if (at == chosen)
        return far;
    if (!t->ties)
        return fabs(at - chosen) > far ? fabs(at - chosen) : far;
    uint64_t k = (uint64_t)((int64_t)at - t->tie_lo);
    if (k < t->tie_words * 64)
        t->ties[(size_t)place * t->tie_words + k / 64] |= UINT64_C(1) << k % 64;
    return far;
}

static void columns_ties(struct worker *w, const struct reg *term, const struct reg *guard,
                         double at) {
    const struct columns *c = w->c;
    for (size_t l = 0; l < w->m.n; l++) {
        bool out = guard && guard->v[l] == 0 && !(guard->e[l] > 0);
        if (!out && fold_ties(c->f->worst, value_of(c->sum[l], c->variance[l]), lane_of(term, l)))
            w->far[l] = note_tie(w, place_of(w, l), c->at[l], at, w->far[l]);
    }
}

static void columns_term(struct worker *w) {
    struct reg *term = &w->m.regs[w->n->p.result];
    const struct reg *guard = guard_of(w);
    double at = (double)w->m.at[w->n->loops[0].var];
    if (!run_term(w))
        return;
    if (w->pass == PASS_ADD && w->n->p.product != SIZE_MAX) {
        const struct instr *i = &w->n->p.code[w->n->p.product];
        columns_add_product(w->c, &w->m.regs[i->src[0]], i->lone[0], &w->m.regs[i->src[1]],
                            i->lone[1], w->m.n);
    } else if (w->pass == PASS_ADD)
        columns_add(w->c, term, guard, w->m.n, at);
    else if (w->pass == PASS_LOOK) {
        doubt_padded(w, term);
        columns_look(w->c, term, guard, w->m.n);
    } else
        columns_ties(w, term, guard, at);
}

static void row_ties(struct worker *w, const struct reg *term, const struct reg *guard, double at) {
    for (size_t l = 0; l < w->m.n; l++) {
        bool out = guard && guard->v[l] == 0 && !(guard->e[l] > 0);
        if (!out &&
            fold_ties(w->r.f->worst, value_of(w->r.c.sum, w->r.c.variance), lane_of(term, l)))
            w->far[0] = note_tie(w, place_of(w, 0), w->r.c.at, at + (double)l, w->far[0]);
    }
}

/* The product that the sum makes itself; what is not ordinary about it is settled first. */
static void row_product(struct worker *w, struct reg *term) {
    const struct program *p = &w->n->p;
    const struct instr *i = &p->code[p->product];
    const double *x = w->m.regs[i->src[0]].v, *y = w->m.regs[i->src[1]].v;
    if (i->lone[0])
        for (size_t l = 0; l < w->m.n; l++)
            term->v[l] = x[0] * y[l];
    else
        for (size_t l = 0; l < w->m.n; l++)
            term->v[l] = x[l] * y[i->lone[1] ? 0 : l];
    if (vector_ordinary(term, false, w->n->fold.most, w->m.n))
        return;
    w->m.careful = true;
    machine_run(&w->m, p->product, p->product + 1, 0);
    w->m.careful = false;
}

/* The innermost loop, in lanes. */
static void row_terms(struct worker *w, size_t var, int64_t lo, int64_t hi) {
    struct reg *term = &w->m.regs[w->n->p.result];
    for (int64_t at = lo; at < hi; at += LANES) {
        w->m.at[var] = at;
        w->m.n = hi - at < LANES ? (size_t)(hi - at) : LANES;
        changed(w, w->n->p.inner);
        if (!run_term(w))
            continue;
        if (w->n->p.product != SIZE_MAX)
            row_product(w, term);
        doubt_padded(w, term);
        if (w->pass == PASS_TIES)
            row_ties(w, term, guard_of(w), (double)at);
        else
            row_add_all(&w->r, term, guard_of(w), w->m.n, (double)at);
    }
}

/* The union of a bound over the lanes. */
static int64_t bound_over_lanes(struct worker *w, const struct bound *b, bool most) {
    int lane = w->n->p.lane;
    int64_t best = bound_at(w->n, b, w->m.at);
    if (w->n->mode != NEST_COLUMNS || lane < 0 || !(b->vars >> lane & 1))
        return best;
    int64_t first = w->m.at[lane];
    for (size_t l = 1; l < w->m.n; l++) {
        w->m.at[lane] = first + (int64_t)l;
        int64_t v = bound_at(w->n, b, w->m.at);
        best = (most ? v > best : v < best) ? v : best;
    }
    w->m.at[lane] = first;
    return best;
}

/* The innermost loop without its program. False: it must run. */
static bool direct_terms(struct worker *w, size_t var, int64_t lo, int64_t hi) {
    struct products p;
    if (!w->direct->x || w->pass == PASS_TIES || hi <= lo)
        return false;
    w->m.at[var] = lo;
    if (!contract_at(w->direct, w->n, w->m.contents, w->m.at, hi - lo, w->m.n, &p))
        return false;
    if (w->pass == PASS_LOOK) {
        products_look(w->c, &p, w->m.n);
        return true;
    }
    products_add(w->c, &p, w->m.n);
    if (w->n->p.track_peak)
        products_reach(w->c, &p, w->m.n, w->m.peak);
    return true;
}

/* The terms that may belong to the result, of a reduction by index. False: it is none, or all may
 * and must be gone through. */
static bool listed_terms(struct worker *w) {
    const struct nest *n = w->n;
    int64_t count = 0;
    const uint32_t *terms = n->listed ? by_index_terms(w->lists, w->m.at, &count) : NULL;
    size_t last = n->loops[n->nloops ? n->nloops - 1 : 0].var;
    if (!terms) {
        /* Magnitudes beyond what counts have been met: how large others are tells nobody more. */
        return n->listed && n->p.track_peak && w->peak > FLT_MAX &&
               by_index_unbounded(w->lists, w->m.at);
    }
    for (int64_t i = 0; i < count; i++) {
        by_index_place(w->lists, terms[i], w->m.at);
        changed(w, 2);
        if (n->mode == NEST_ROWS)
            row_terms(w, last, w->m.at[last], w->m.at[last] + 1);
        else
            columns_term(w);
    }
    return true;
}

/* As deep as the reduction has variables. */
static void run_loops(struct worker *w, size_t k) {
    const struct nest *n = w->n;
    if (k == 0 && listed_terms(w))
        return;
    if (k == n->nloops) {
        columns_term(w);
        return;
    }
    const struct loop *l = &n->loops[k];
    int64_t lo = bound_over_lanes(w, &l->lo, false), hi = bound_over_lanes(w, &l->hi, true);
    if (n->mode == NEST_ROWS && k + 1 == n->nloops) {
        row_terms(w, l->var, lo, hi);
        return;
    }
    if (k + 1 == n->nloops && direct_terms(w, l->var, lo, hi))
        return;
    for (int64_t v = lo; v < hi; v++) {
        w->m.at[l->var] = v;
        changed(w, 2 + (unsigned)k);
        run_loops(w, k + 1);
    }
}

static bool wants_ties(const struct nest *n) {
    return !n->fold.exact && (n->fold.op == REDUCTION_ARGMAX || n->fold.op == REDUCTION_ARGMIN);
}

static void again(struct worker *w, enum pass pass) {
    w->pass = pass;
    w->pending = 1;
    run_loops(w, 0);
    w->pass = PASS_ADD;
}

static void run_columns(struct worker *w) {
    double v[LANES], e[LANES];
    size_t n = w->m.n;
    columns_start(w->c, &w->n->fold);
    run_loops(w, 0);
    if (!columns_close(w->c, n)) {
        w->m.careful = true;
        again(w, PASS_LOOK);
        w->m.careful = false;
    }
    columns_result(w->c, v, e, n);
    memset(w->far, 0, sizeof w->far);
    if (wants_ties(w->n)) {
        again(w, PASS_TIES);
        for (size_t l = 0; l < n; l++)
            e[l] += w->far[l] * w->far[l];
    }
    for (size_t l = 0; l < n && w->n->p.track_peak; l++)
        machine_note_peak(&w->m, l, w->c->peak[l]);
    store_lanes(w, v, e);
}

static double most_of(const double *v, size_t n) {
    double most = 0;
    for (size_t l = 0; l < n; l++)
        most = v[l] > most ? v[l] : most;
    return most;
}

static void run_row(struct worker *w) {
    row_start(&w->r, &w->n->fold);
    run_loops(w, 0);
    struct value d = row_result(&w->r);
    w->far[0] = 0;
    if (wants_ties(w->n)) {
        again(w, PASS_TIES);
        d.e += w->far[0] * w->far[0];
    }
    double peak = w->n->p.track_peak ? fmax(w->r.peak, most_of(w->m.peak, LANES)) : 0;
    w->peak = peak > w->peak ? peak : w->peak;
    store(w->n, place_of(w, 0), d, peak);
}

/* A scan in progress: results come out when the term at their bound has been taken in. */
struct scan {
    struct worker *w;
    size_t axis_var;
    int64_t first, last; /* of the axis */
    int64_t offset;      /* the bound is axis + offset */
    double peak;
};

static void scan_store(struct scan *s, int64_t axis) {
    struct worker *w = s->w;
    if (axis < s->first || axis > s->last)
        return;
    struct value d = row_result(&w->r);
    s->peak = w->n->p.track_peak && w->r.peak > s->peak ? w->r.peak : s->peak;
    w->peak = s->peak > w->peak ? s->peak : w->peak;
    w->m.at[s->axis_var] = axis;
    store(w->n, place_of(w, 0), d, s->peak);
}

/* From the end the first of equals comes last. */
static void take_equal(struct row *r, double v, double at) {
    if (v == r->c.sum || (isnan(v) && isnan(r->c.sum)))
        r->c.at = at;
}

/* Lanes of one block, forwards or backwards, each followed by the result that ends there. */
static void scan_block(struct scan *s, int64_t at, bool taken) {
    struct worker *w = s->w;
    struct reg *term = &w->m.regs[w->n->p.result];
    bool back = w->n->backwards;
    bool place = w->n->fold.op == REDUCTION_ARGMAX || w->n->fold.op == REDUCTION_ARGMIN;
    if (taken)
        doubt_padded(w, term);
    for (size_t k = 0; k < w->m.n; k++) {
        size_t l = back ? w->m.n - 1 - k : k;
        int64_t v = at + (int64_t)l;
        s->peak = w->m.peak[l] > s->peak ? w->m.peak[l] : s->peak;
        if (taken)
            row_add(&w->r, term, guard_of(w), l, (double)v);
        if (taken && back && place)
            take_equal(&w->r, term->v[l], (double)v);
        /* Forwards the bound lies past the last term, backwards it is the last term. */
        scan_store(s, (back ? v : v + 1) - s->offset);
    }
    memset(w->m.peak, 0, sizeof w->m.peak);
}

static void scan_terms(struct scan *s, int64_t lo, int64_t hi) {
    struct worker *w = s->w;
    const struct nest *n = w->n;
    int64_t blocks = hi > lo ? (hi - lo + LANES - 1) / LANES : 0;
    for (int64_t b = 0; b < blocks; b++) {
        int64_t at = lo + LANES * (n->backwards ? blocks - 1 - b : b);
        w->m.at[n->loops[0].var] = at;
        w->m.n = hi - at < LANES ? (size_t)(hi - at) : LANES;
        changed(w, n->p.inner);
        scan_block(s, at, run_term(w));
    }
}

static void run_scan(struct worker *w) {
    const struct nest *n = w->n;
    const struct axis *axis = &n->axes[n->lane_axis];
    const struct loop *l = &n->loops[0];
    const struct bound *moving = n->backwards ? &l->lo : &l->hi;
    struct scan s = {
        .w = w, .axis_var = axis->var, .first = axis->lo, .last = axis->lo + axis->n - 1};
    w->m.at[axis->var] = 0;
    s.offset = bound_at(n, moving, w->m.at);
    int64_t fixed = bound_at(n, n->backwards ? &l->hi : &l->lo, w->m.at);
    row_start(&w->r, &n->fold);
    /* Results of no term: those whose bound does not reach the fixed one. */
    if (n->backwards)
        for (int64_t a = s.last; a >= s.first && a + s.offset >= fixed; a--)
            scan_store(&s, a);
    else
        for (int64_t a = s.first; a <= s.last && a + s.offset <= fixed; a++)
            scan_store(&s, a);
    if (n->backwards)
        scan_terms(&s, s.first + s.offset, fixed);
    else
        scan_terms(&s, fixed, s.last + s.offset);
}

static void run_points(struct worker *w) {
    const struct reg *result = &w->m.regs[w->n->p.result];
    run_term(w);
    store_lanes(w, result->v, result->e);
}

static int64_t chunks_of(const struct nest *n) {
    if (n->lane_axis < 0 || n->mode == NEST_SCAN)
        return 1;
    return (n->axes[n->lane_axis].n + n->chunk - 1) / n->chunk;
}

/* Puts the axes at item i: chunks of the lane axis vary fastest, then the other axes in order. */
static void set_item(struct worker *w, int64_t i) {
    const struct nest *n = w->n;
    int64_t chunks = chunks_of(n), chunk = i % chunks;
    i /= chunks;
    w->m.n = 1;
    for (size_t k = n->naxes; k-- > 0;) {
        const struct axis *a = &n->axes[k];
        if ((int)k == n->lane_axis)
            continue;
        w->m.at[a->var] = a->lo + i % a->n;
        i /= a->n;
    }
    if (n->lane_axis >= 0 && n->mode != NEST_SCAN) {
        const struct axis *a = &n->axes[n->lane_axis];
        int64_t first = chunk * n->chunk, rest = a->n - first;
        w->m.at[a->var] = a->lo + first;
        w->m.n = (size_t)(rest < n->chunk ? rest : n->chunk);
    }
    w->pending = 1;
}

static void run_item(struct worker *w, int64_t i) {
    set_item(w, i);
    if (w->n->p.track_peak)
        memset(w->m.peak, 0, sizeof w->m.peak);
    switch (w->n->mode) {
    case NEST_POINTS:
        run_points(w);
        return;
    case NEST_COLUMNS:
        run_columns(w);
        return;
    case NEST_ROWS:
        run_row(w);
        return;
    case NEST_SCAN:
        run_scan(w);
        return;
    }
}

static void run_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    struct running *r = ctx;
    struct worker *w = mem_try_resize(NULL, sizeof *w);
    r->failed[part] = true;
    if (!w)
        return;
    *w = (struct worker){.n = r->n, .direct = &r->direct, .lists = &r->lists};
    if (r->n->mode == NEST_COLUMNS)
        w->c = mem_try_resize(NULL, sizeof *w->c);
    if (machine_init(&w->m, &r->n->p, r->contents) && (w->c || r->n->mode != NEST_COLUMNS)) {
        r->failed[part] = false;
        for (int64_t i = first; i < last; i++)
            run_item(w, i);
    }
    r->peak[part] = w->peak;
    machine_release(&w->m);
    mem_free(w->c);
    mem_free(w);
}

bool nest_run(const struct nest *n, const struct content *contents, unsigned threads,
              double *peak) {
    struct running r = {.n = n, .contents = contents};
    int64_t items = chunks_of(n);
    bool ok = true;
    for (size_t k = 0; k < n->naxes; k++)
        items *= (int)k == n->lane_axis ? 1 : n->axes[k].n;
    for (size_t k = 0; k < n->naxes; k++)
        if (n->axes[k].n <= 0)
            return true;
    if (n->listed && !by_index_make(&r.lists, n, contents, threads)) {
        by_index_release(&r.lists);
        return false;
    }
    contract_init(&r.direct, n, contents);
    unsigned parts = parallel_for(threads, items, run_piece, &r);
    contract_release(&r.direct);
    by_index_release(&r.lists);
    for (unsigned i = 0; i < parts; i++) {
        ok &= !r.failed[i];
        *peak = r.peak[i] > *peak ? r.peak[i] : *peak;
    }
    return ok;
}

static struct bound bound_of(const struct inst *in, const struct expr *e) {
    struct bound b = {.e = e, .vars = expr_vars(e)};
    b.affine = affine_of(in, e, &b.a);
    return b;
}

static uint32_t bit(size_t var) {
    return UINT32_C(1) << var;
}

static bool mentions(const struct loop *l, size_t var) {
    return (l->lo.vars | l->hi.vars) & bit(var);
}

static bool is_sum(const struct nest *n) {
    return n->reduce && (n->reduce->op == REDUCTION_SUM || n->reduce->op == REDUCTION_MEAN);
}

struct ranges nest_ranges(const struct nest *n) {
    struct ranges r = ranges_of(n->in, n->s), inside;
    for (size_t k = 0; k < n->naxes; k++)
        r.index[n->axes[k].var] = (struct range){n->axes[k].lo, n->axes[k].lo + n->axes[k].n - 1};
    inside = r;
    return n->reduce && ranges_enter(&inside, n->reduce) ? inside : r;
}

/* The body, with the guard, and with the bounds that vary over the lanes of axis `lane`. */
static void compile(struct nest *n, int lane, const struct stage *stages, size_t nstages,
                    const struct ranges *r, bool track_peak) {
    program_init(&n->p, n->in, n->s, stages, nstages, r, track_peak);
    for (size_t k = 0; k < n->nloops && lane >= 0 && n->mode == NEST_COLUMNS; k++) {
        const struct loop *l = &n->loops[k];
        program_guard_bounds(&n->p, l->var, l->lo.vars & bit((size_t)lane) ? l->lo.e : NULL,
                             l->hi.vars & bit((size_t)lane) ? l->hi.e : NULL);
    }
    if (n->reduce && n->reduce->guard)
        program_guard(&n->p, n->reduce->guard);
    program_body(&n->p, n->body, n->reduce && !n->fold.integer);
}

/* Nanoseconds, roughly: to start an instruction, and for one lane of it. */
#define COST_START 15.0

static double read_cost(const struct nest *n, const struct instr *i, size_t var) {
    size_t size = i->ref < n->in->task->ntensors ? 4 : 8;
    int64_t step = i->place.coef[var];
    uint64_t bytes = (uint64_t)(step < 0 ? -step : step) * size;
    if (i->nplaces)
        return 4;
    return step == 1 || step == -1 ? 0.3 : bytes < 64 ? 0.6 : 2.5;
}

static double lane_cost(const struct nest *n, const struct instr *i, size_t var) {
    if (i->op == OP_READ)
        return read_cost(n, i, var);
    if (i->op != OP_NODE)
        return 0.4;
    switch (i->kind) {
    case EXPR_CALL:
        return 8;
    case EXPR_DIV:
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        return 2;
    default:
        return i->exact ? 0.3 : 0.8;
    }
}

/* One term, or one point, with lanes along `var`. */
static double cost_along(const struct nest *n, size_t var, double length, uint32_t over) {
    double lanes = length < LANES ? length : LANES, cost = 0;
    bool skips = n->p.guard >= 0 && !(n->p.code[n->p.guard].vars & bit(var));
    for (size_t k = 0; k < n->p.n; k++) {
        const struct instr *i = &n->p.code[k];
        if (over && !(i->vars & over))
            continue;
        double each = COST_START / lanes + (i->vars & bit(var) ? lane_cost(n, i, var) : 0);
        cost += skips && k >= n->p.guard_end ? each / 2 : each;
    }
    return cost;
}

static double extent_of(const struct ranges *r, size_t var) {
    struct range v = r->index[var];
    return v.hi < v.lo ? 1 : (double)v.hi - (double)v.lo + 1;
}

/* Bounds of other variables must not depend on the one that runs in lanes. */
static bool may_be_last(const struct nest *n, size_t loop) {
    for (size_t k = 0; k < n->nloops; k++)
        if (mentions(&n->loops[k], n->loops[loop].var))
            return false;
    return true;
}

static void move_last(struct nest *n, size_t loop) {
    struct loop l = n->loops[loop];
    for (size_t k = loop; k + 1 < n->nloops; k++)
        n->loops[k] = n->loops[k + 1];
    n->loops[n->nloops - 1] = l;
}

/* A way to evaluate a nest, and nanoseconds for a term of it or a point, roughly. */
struct way {
    enum nest_mode mode;
    int lane_axis;
    size_t last; /* ROWS: the loop that runs in lanes */
    double cost;
};

enum { FOLD_COLUMNS = 1, FOLD_ROW = 2, START_RESULT = 300 };

static double terms_of(const struct nest *n, const struct ranges *r) {
    double terms = 1;
    for (size_t k = 0; k < n->nloops; k++)
        terms *= extent_of(r, n->loops[k].var);
    return terms;
}

static uint32_t loop_vars(const struct nest *n) {
    uint32_t over = 0;
    for (size_t k = 0; k < n->nloops; k++)
        over |= bit(n->loops[k].var);
    return over;
}

static double lanes_cost(const struct nest *n, const struct ranges *r, size_t axis) {
    size_t var = n->axes[axis].var;
    double length = (double)(n->axes[axis].n < LANES ? n->axes[axis].n : LANES);
    double cost = cost_along(n, var, (double)n->axes[axis].n, loop_vars(n)) +
                  START_RESULT / (length * terms_of(n, r)) +
                  (n->reduce ? FOLD_COLUMNS + COST_START / length : 0);
    for (size_t l = 0; l < n->nloops; l++)
        cost *= mentions(&n->loops[l], var) ? 2 : 1;
    return cost;
}

static double rows_cost(const struct nest *n, const struct ranges *r, size_t loop) {
    size_t var = n->loops[loop].var;
    return cost_along(n, var, extent_of(r, var), loop_vars(n)) + START_RESULT / terms_of(n, r) +
           FOLD_ROW;
}

/* n->p holds a trial compilation. `ordered`: terms stay in the order of the loops. */
static struct way cheapest(const struct nest *n, const struct ranges *r, bool ordered) {
    struct way way = {n->reduce ? NEST_COLUMNS : NEST_POINTS, -1, 0, INFINITY};
    for (size_t k = 0; k < n->naxes; k++) {
        double cost = lanes_cost(n, r, k);
        if (cost <= way.cost) { /* the innermost of equals */
            way.cost = cost;
            way.lane_axis = (int)k;
        }
    }
    for (size_t l = ordered && n->nloops ? n->nloops - 1 : 0; l < n->nloops; l++) {
        double cost = rows_cost(n, r, l);
        if (cost < way.cost && may_be_last(n, l))
            way = (struct way){NEST_ROWS, -1, l, cost};
    }
    return way;
}

/* Each term belongs to one result along the axes that are equated with its numbers. */
static double listed_points(const struct nest *n) {
    double points = by_index_all_terms(n), results = 1;
    for (size_t k = 0; k < n->naxes; k++) {
        results *= (double)n->axes[k].n;
        points *= n->by.pinned >> n->axes[k].var & 1 ? 1 : (double)n->axes[k].n;
    }
    return points + results;
}

/* A scan goes through its terms once for all results along its axis. */
static double points_of(const struct nest *n, const struct ranges *r) {
    bool scan = n->mode == NEST_SCAN;
    if (n->listed)
        return listed_points(n);
    double points = terms_of(n, r) + (scan ? (double)n->axes[n->lane_axis].n : 0);
    for (size_t k = 0; k < n->naxes; k++)
        if (!scan || (int)k != n->lane_axis)
            points *= (double)n->axes[k].n;
    return points;
}

/* The way of the same results over longer axes, so that the same operations make the same bits;
 * unless so few lanes are left of it that another is several times faster, and that is worth it. */
static struct way way_like(const struct nest *n, const struct ranges *r, const struct nest *whole) {
    enum { SLOWER_MOST = 4, WORTH_NS = 5000000 };
    struct way best = cheapest(n, r, true), same = {whole->mode, whole->lane_axis, 0, 0};
    if (!n->reduce)
        return best;
    if (same.mode == NEST_ROWS) {
        same.last = n->nloops - 1;
        same.cost = rows_cost(n, r, same.last);
    } else if (same.lane_axis >= 0) {
        same.cost = lanes_cost(n, r, (size_t)same.lane_axis);
    }
    bool slower = same.cost > SLOWER_MOST * best.cost;
    return slower && same.cost * points_of(n, r) > WORTH_NS ? best : same;
}

/* Of a reduction by index: lanes along an axis whose results have the terms of a list together, or
 * one result at a time. */
static void choose_listed(struct nest *n, const struct ranges *r, const struct nest *whole) {
    double least = INFINITY;
    n->mode = whole ? whole->mode : NEST_ROWS;
    n->lane_axis = whole ? whole->lane_axis : -1;
    for (size_t k = 0; k < n->naxes && !whole; k++) {
        bool together = !((n->by.pinned | n->by.shared) >> n->axes[k].var & 1);
        double cost = lanes_cost(n, r, k);
        if (!together || n->axes[k].n < 2 || cost > least)
            continue;
        least = cost;
        n->mode = NEST_COLUMNS;
        n->lane_axis = (int)k;
    }
}

/* Sets the mode and the lane axis. */
static void choose(struct nest *n, const struct ranges *r, const struct nest *whole) {
    if (n->listed) {
        choose_listed(n, r, whole);
        return;
    }
    struct way way = whole ? way_like(n, r, whole) : cheapest(n, r, false);
    n->mode = way.mode;
    n->lane_axis = way.lane_axis;
    if (n->mode == NEST_ROWS)
        move_last(n, way.last);
}

/* The bound is axis + constant. */
static int scanned_axis(const struct nest *n, const struct bound *b) {
    for (size_t k = 0; k < n->naxes; k++)
        if (b->affine && b->a.coef[n->axes[k].var] == 1)
            return (int)k;
    return -1;
}

static bool is_scan(struct nest *n) {
    const struct reduce *r = n->reduce;
    bool place = r && (r->op == REDUCTION_ARGMAX || r->op == REDUCTION_ARGMIN);
    if (!r || r->nvars != 1 || (place && !n->p.code[n->p.result].exact))
        return false; /* of places that may tie, each result has its own */
    uint32_t used = expr_vars(n->body) | (r->guard ? expr_vars(r->guard) : 0);
    const struct bound *sides[2] = {&n->loops[0].hi, &n->loops[0].lo};
    for (int k = 0; k < 2; k++) {
        int axis = scanned_axis(n, sides[k]);
        if (axis < 0)
            continue;
        uint32_t var = bit(n->axes[axis].var);
        if (used & var || sides[1 - k]->vars & var || (place && k == 1 && r->guard))
            continue;
        n->mode = NEST_SCAN;
        n->lane_axis = axis;
        n->backwards = k == 1;
        return true;
    }
    return false;
}

/* The sum makes the product, and adds its rounding. */
static void absorb_rounding(struct nest *n) {
    n->fold.exact = true;
    n->fold.relative2 += n->p.rules.unit2;
}

/* A product of exact operands in every lane is made by the sum, which saves passes over the lanes
 * in the case that matters most. */
static void fuse_product(struct nest *n, int lane) {
    struct instr *i = &n->p.code[n->p.result];
    bool product = i->op == OP_NODE && i->kind == EXPR_MUL && i->type == VALUE_REAL &&
                   n->p.code[i->src[0]].exact && n->p.code[i->src[1]].exact;
    bool varies = lane < 0 || i->vars & bit((size_t)lane);
    bool blocks = n->mode == NEST_COLUMNS || n->mode == NEST_ROWS;
    if (!blocks || !is_sum(n) || !product || !varies || n->p.guard >= 0 || n->p.track_peak)
        return;
    i->summed = true;
    n->p.product = n->p.result;
    absorb_rounding(n);
}

static void schedule(struct nest *n) {
    unsigned order[TASK_MAX_VARS] = {0}, inner = 1;
    int lane = n->lane_axis < 0 ? -1 : (int)n->axes[n->lane_axis].var;
    for (size_t k = 0; k < n->naxes; k++)
        order[n->axes[k].var] = 1;
    for (size_t k = 0; k < n->nloops; k++)
        order[n->loops[k].var] = inner = 2 + (unsigned)k;
    if (n->mode == NEST_ROWS || n->mode == NEST_SCAN)
        lane = (int)n->loops[n->nloops - 1].var;
    if (n->reduce) {
        n->fold.exact = n->p.code[n->p.result].exact;
        n->fold.masked = n->p.guard >= 0;
        n->fold.track_peak = n->p.track_peak;
        contract_find(n, lane);
        fuse_product(n, lane);
    } else {
        n->p.code[n->p.result].how |= SETTLE_ROOT;
    }
    program_schedule(&n->p, lane, order, inner);
}

static void set_chunk(struct nest *n) {
    int64_t length = n->lane_axis < 0 ? 1 : n->axes[n->lane_axis].n;
    int64_t chunks = (length + LANES - 1) / LANES;
    n->chunk = chunks ? (length + chunks - 1) / chunks : 1;
}

/* stages: a reduction that is one of them is there already, and read. */
static void start(struct nest *n, const struct inst *in, const struct statement *s,
                  const struct expr *e, const struct axis *axes, size_t naxes,
                  const struct stage *stages, size_t nstages) {
    bool staged = false;
    for (size_t k = 0; k < nstages; k++)
        staged |= stages[k].e == e;
    *n = (struct nest){.in = in, .s = s, .body = e, .naxes = naxes, .lane_axis = -1};
    for (size_t k = 0; k < naxes; k++)
        n->axes[k] = axes[k];
    if (e->kind == EXPR_REDUCE && !staged) {
        n->reduce = e->reduce;
        n->body = e->args[0];
        n->fold = fold_of(in->task, e, &n->partial);
        n->nloops = e->reduce->nvars;
        for (size_t k = 0; k < n->nloops; k++)
            n->loops[k] = (struct loop){.var = e->reduce->vars[k].var,
                                        .lo = bound_of(in, e->reduce->vars[k].lo),
                                        .hi = bound_of(in, e->reduce->vars[k].hi)};
    }
}

/* whole: NULL, or the nest whose way is kept. */
static void complete(struct nest *n, const struct expr *e, const struct stage *stages,
                     size_t nstages, bool track_peak, const struct nest *whole) {
    struct ranges r = nest_ranges(n);
    compile(n, -1, stages, nstages, &r, track_peak);
    n->listed = whole ? whole->listed : n->reduce && by_index_pays(n, e);
    n->by = whole ? whole->by : n->by;
    if (!is_scan(n)) {
        choose(n, &r, whole);
        program_release(&n->p);
        compile(n, n->lane_axis < 0 ? -1 : (int)n->axes[n->lane_axis].var, stages, nstages, &r,
                track_peak);
    }
    n->p.ranges = NULL;
    schedule(n);
    set_chunk(n);
}

void nest_init(struct nest *n, const struct inst *in, const struct statement *s,
               const struct expr *e, const struct axis *axes, size_t naxes,
               const struct stage *stages, size_t nstages, bool track_peak) {
    start(n, in, s, e, axes, naxes, stages, nstages);
    complete(n, e, stages, nstages, track_peak, NULL);
}

void nest_init_part(struct nest *n, const struct nest *whole, const struct inst *in,
                    const struct expr *e, const struct axis *axes, const struct stage *stages,
                    size_t nstages) {
    start(n, in, whole->s, e, axes, whole->naxes, stages, nstages);
    for (size_t k = 0; k < n->nloops; k++)
        n->loops[k] = whole->loops[k];
    complete(n, e, stages, nstages, false, whole);
}

double nest_points(const struct nest *n) {
    struct ranges r = nest_ranges(n);
    return points_of(n, &r);
}

/* Where magnitudes are tracked a product has not been fused, but finite factors may take the short
 * way: then the sum makes it after all. */
static void meet_factors(struct nest *n, const struct content *contents) {
    for (size_t k = 0; k < 2 && n->contracts; k++)
        n->contracts = contents[n->factor[k].content].finite;
    if (n->contracts)
        absorb_rounding(n);
}

void nest_meet(struct nest *n, const struct content *contents) {
    if (n->p.track_peak)
        meet_factors(n, contents);
    if (!n->reduce || !n->partial)
        return;
    for (size_t k = 0; k < n->p.n; k++)
        if (n->p.code[k].op == OP_READ && !contents[n->p.code[k].ref].finite)
            n->fold.unjudged = true;
    /* A product that may be NaN is never exact, so that its register has a variance. */
    n->pads = n->fold.unjudged && pattern_holds_pad(n->body) && n->p.result >= n->p.nexact;
}

void nest_release(struct nest *n) {
    program_release(&n->p);
}
