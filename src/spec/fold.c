/* Rows: one result, term by term. Columns: a term each for the results of all lanes, in loops
 * without branches, so that they become vector arithmetic; what is out of the ordinary is found at
 * the end and looked at again. */
#include "base/wide.h"

#include "spec/fold.h"

#include "spec/pattern.h"
#include <float.h>
#include <math.h>
#include <string.h>

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

void row_start(struct row *r, const struct fold *f) {
    *r = (struct row){.f = f, .c = chain_start(f)};
    r->before = chains_start(r->level, CHAIN_LEVELS);
}

void row_add(struct row *r, const struct reg *term, const struct reg *guard, size_t l, double at) {
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
    if (!f->exact)
        c.variance += sum_of(term->e + from, take);
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

void row_add_all(struct row *r, const struct reg *term, const struct reg *guard, size_t n,
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

struct value row_result(const struct row *r) {
    return chain_result(&r->c, &r->before, r->f);
}

/* ---- columns ---- */

void columns_start(struct columns *c, const struct fold *f) {
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

WIDE static void sum_all(struct columns *restrict c, const struct reg *restrict t, size_t n) {
    for (size_t l = 0; l < n; l++) {
        struct chain at = chain_at(c, l);
        chain_step(&at, t->v[l]);
        chain_put(c, l, at);
    }
    if (!c->f->exact)
        for (size_t l = 0; l < n; l++)
            c->variance[l] += t->e[l];
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
    for (size_t l = 0; l < n; l++) {
        bool better = (want * v[l] > want * c->sum[l]) | (v[l] != v[l]);
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
            memcpy(c->sum, c->level[k].sum, n * sizeof *c->sum);
            memcpy(c->variance, c->level[k].variance, n * sizeof *c->variance);
        }
        more = true;
    }
    for (size_t l = 0; l < n; l++) {
        double bias = f->truncation * c->bias[l];
        c->variance[l] += bias * bias + c->doubt[l] + lost_variance(f, c->lost[l]);
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
        c->odd[l] |= !(fabs(c->sum[l]) <= c->f->most) || !(c->variance[l] <= DBL_MAX);
        ordinary &= !c->odd[l];
        c->partial_sq[l] =
            c->f->op == REDUCTION_PROD ? 1 : 0; /* partial results of the second look */
    }
    return ordinary;
}

void columns_look(struct columns *c, const struct reg *term, const struct reg *guard, size_t n) {
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

void columns_result(struct columns *c, double *v, double *e, size_t n) {
    const struct fold *f = c->f;
    for (size_t l = 0; l < n; l++) {
        double count = f->masked ? c->count[l] : c->total;
        struct value d = fold_finish(f, count, c->doubts[l], c->at[l], c->seen[l],
                                     value_of(c->sum[l], c->variance[l]));
        v[l] = d.v;
        e[l] = d.e;
    }
}
