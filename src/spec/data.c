/* Inputs as a kernel gets them: the kinds (source_value.h), definitions evaluated over them,
 * assumptions respected.
 *
 * A defined input is its expression over the random tensors under the same kind, so whatever the
 * definition guarantees (rows that sum to one, a symmetric matrix) holds under every kind. An
 * assumption is made true element by element: of a symmetric matrix the upper triangle is made and
 * mirrored, values outside an assumed range are folded back into it. */
#include "spec/data.h"

#include "base/parallel.h"
#include "base/wide.h"
#include "spec/bind.h"
#include "spec/scalar.h"
#include "spec/source.h"
#include <math.h>

/* ---- what the values of a tensor are made from (source.h) ----
 *
 * It is computed once for a tensor, a kind and a seed; the values themselves are in source_value.h.
 */

static double magnitude_of(const struct source *s) {
    double m = 1;
    if (s->dist == DIST_UNIFORM || s->dist == DIST_RANDINT)
        m = fmax(fabs(s->a), fabs(s->b));
    else if (s->dist == DIST_NORMAL)
        m = fabs(s->a) + fabs(s->b);
    return m > 0 ? m : 1;
}

enum { TILE_SIDE = 16, MOST_BETWEEN = 1024, LEAST_SLICES = 3, COUNTS_BITS = 6 };
enum { MOST_LITERAL = 32 }; /* times the magnitude of the tensor */

/* Often the first or the last element: what a loop leaves out. */
static void place_spot(struct source *s) {
    uint64_t which = rng_below(s->place, 3, 4);
    int64_t any = (int64_t)rng_below(s->place, 0, (uint64_t)s->count);
    s->spot = which == 0 ? 0 : which == 1 ? s->count - 1 : any;
}

static void place_tile(struct source *s) {
    int64_t rows = s->count / s->row;
    s->tile_rows = rows < TILE_SIDE ? rows : TILE_SIDE;
    s->tile_cols = s->row < TILE_SIDE ? s->row : TILE_SIDE;
    s->tile_row = (int64_t)rng_below(s->place, 1, (uint64_t)(rows - s->tile_rows + 1));
    s->tile_col = (int64_t)rng_below(s->place, 2, (uint64_t)(s->row - s->tile_cols + 1));
}

/* Half of the bits that the type holds. A kernel of a lower class rounds the operands of its sums
 * of products: a spread below the steps of its format would make all their errors one. */
static int offset_bits(enum dtype t, enum accuracy class) {
    int bits = t == DTYPE_F16 ? 6 : t == DTYPE_BF16 ? 4 : 12;
    return class == ACCURACY_FP32 ? bits : 4;
}

/* What is normalised or compared may lie along the last dimension or along others: either is drawn,
 * where the first dimension has slices enough. */
static void set_group(struct source *s, const struct tensor *t, const struct bound_tensor *b) {
    bool slices = t->rank > 2 && b->extent[0] >= LEAST_SLICES;
    s->mixed = s->kind == DATA_MIXED;
    s->group = slices && rng_below(s->place, ~(uint64_t)s->count, 2) ? b->stride[0] : s->row;
}

/* Integers that places are computed from stay where the bounds were proved; what inputs are defined
 * from stays what the definition may expect: a draw of 0 or 1 is never 7. */
static void hold(struct source *s, const struct tensor *t, const struct bound_tensor *b) {
    if (t->indexes && s->type != 'f') {
        s->held = true;
        s->lo = b->lo;
        s->hi = b->hi;
    } else if (t->role == TENSOR_RAND && s->dist == DIST_RANDINT) {
        s->held = true;
        s->lo = (int64_t)s->a;
        s->hi = (int64_t)s->b - 1;
    } else if (t->role == TENSOR_RAND && s->dist == DIST_BERNOULLI) {
        s->type = 'b';
    }
}

/* Whatever takes a logarithm: libraries differ in the last bit of one. */
static void set_whole(struct source *s) {
    dtype_limits(s->dtype, &s->whole_lo, &s->whole_hi);
    s->whole_lo = fmax(s->whole_lo, -0x1p52);
    s->whole_hi = fmin(s->whole_hi, 0x1p52);
    s->whole_bits = log2(s->whole_hi + 1);
    s->whole_top = exp2(floor(s->whole_bits * s->factor));
}

/* ---- literals ---- */

/* The next number of a float type, upwards or downwards. */
static double next_number(enum dtype t, double v, double direction) {
    double half = round_half_ulp(t, v);
    if (t == DTYPE_F64)
        return nextafter(v, direction * INFINITY);
    double next = round_to(t, v + direction * half);
    return next != v ? next : round_to(t, v + direction * 2 * half);
}

static void put_literal(struct source *s, double v) {
    double step = s->type == 'f' ? 0 : 1;
    double up = step > 0 ? v + step : next_number(s->dtype, v, 1);
    double down = step > 0 ? v - step : next_number(s->dtype, v, -1);
    s->literal[s->nliterals++] = v;
    s->literal[s->nliterals++] = isfinite(up) ? up : v;
    s->literal[s->nliterals++] = isfinite(down) ? down : v;
}

enum { LITERAL_ENTRIES = 6 }; /* of a number: both signs with their neighbours */

/* A number, once; one that the type does not hold is left out, and what there is no room for. So is
 * one far above what the tensor holds: a slope of 20 in place of 0.1 makes exponentials vanish that
 * a kernel may flush to zero. */
static void add_literal(struct source *s, double number) {
    double v = s->type == 'f' ? round_to(s->dtype, fabs(number)) : rint(fabs(number));
    if (!isfinite(v) || v == 0 || (s->type != 'f' && v > s->whole_hi) ||
        (v > 1 && v > MOST_LITERAL * s->magnitude))
        return;
    for (int64_t i = 0; i < s->nliterals; i += LITERAL_ENTRIES)
        if (s->literal[i] == v)
            return;
    if (s->nliterals + LITERAL_ENTRIES > SOURCE_LITERALS)
        return;
    put_literal(s, v);
    put_literal(s, -v);
    if (v <= MOST_BETWEEN * s->magnitude)
        s->between = fmax(s->between, v);
}

/* A kernel that splits what it multiplies makes nothing of what is next to zero, and the product
 * with a large number would show it: zero has no neighbours. */
static void add_zero(struct source *s) {
    for (int i = 0; i < LITERAL_ENTRIES; i++)
        s->literal[s->nliterals++] = i % 2 ? -0.0 : 0;
}

/* Of values: places and the ends of ranges are left out. */
static void add_literals(struct source *s, const struct expr *e) {
    if (e->kind == EXPR_NUMBER)
        add_literal(s, e->integral ? (double)e->integer : e->number);
    if (e->kind == EXPR_READ)
        return;
    for (size_t i = 0; i < e->nargs; i++)
        add_literals(s, e->args[i]);
    if (e->kind == EXPR_REDUCE && e->reduce->guard)
        add_literals(s, e->reduce->guard);
}

/* The numbers for which a kernel may have a way of its own. */
static void add_special(struct source *s) {
    static const double numbers[] = {0, 1, -1, 2, -2, 3, 0.5, -0.5};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        s->literal[s->nliterals++] = numbers[i];
}

static void set_literals(struct source *s, const struct task *t) {
    if (s->kind != DATA_LITERALS && s->kind != DATA_MIXED)
        return;
    if (s->scalar)
        add_special(s);
    s->between = s->magnitude;
    s->counts = (int64_t)exp2(COUNTS_BITS * s->factor);
    add_zero(s);
    add_literal(s, 1);
    for (size_t i = 0; i < t->nstatements; i++)
        add_literals(s, t->statements[i].body);
}

/* ---- kinds of one tensor beside the others' ---- */

static uint64_t shape_number(const struct inst *in) {
    uint64_t n = 0;
    for (size_t i = 0; i < in->task->ndims; i++)
        n = (n ^ (uint64_t)in->dims[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return n;
}

static bool is_drawn(const struct tensor *t) {
    return t->dist.kind != DIST_DEFINED && (tensor_is_input(t) || t->role == TENSOR_RAND);
}

static bool any_factor(const struct expr *e) {
    bool any = e->factor;
    for (size_t i = 0; i < e->nargs && !any; i++)
        any = any_factor(e->args[i]);
    return any;
}

/* A sum of products on tensor cores may lose factors that small, whatever they are multiplied with:
 * see add_zero. */
static bool sums_products(const struct task *t) {
    bool any = false;
    for (size_t i = 0; i < t->nstatements; i++)
        any |= any_factor(t->statements[i].body);
    return any;
}

/* Zeros and subnormal numbers in all tensors at once show little: what is multiplied with zero, or
 * added to it, should be seen. Three times of four only some tensors have them, and the others
 * signed data or, beside zeros, now and then NaN and infinities. */
static bool is_spared(const struct inst *in, size_t tensor, enum data_kind kind, uint64_t seed) {
    const struct task *t = in->task;
    struct rng r = rng_sub(rng_stream(seed, S("tensors")), kind);
    uint64_t shape = shape_number(in), n = 0, at = 0;
    for (size_t i = 0; i < t->ntensors; i++) {
        at += i < tensor && is_drawn(&t->tensors[i]);
        n += is_drawn(&t->tensors[i]);
    }
    if (n < 2 || rng_u64(r, shape) % 4 == 0 || (kind == DATA_SUBNORMAL && sums_products(t)))
        return false;
    return at != rng_below(r, shape + 1, n) && rng_u64(r, shape + 2 + at) >> 63;
}

static enum data_kind kind_beside(const struct inst *in, enum data_kind kind, uint64_t seed) {
    struct rng r = rng_sub(rng_stream(seed, S("tensors beside")), kind);
    return kind == DATA_ZEROS && rng_below(r, shape_number(in), 3) == 0 ? DATA_NONFINITE
                                                                        : DATA_SIGNED;
}

/* Few elements, which belong to all the others: a factor, a rate, an exponent. */
static bool is_scalar(const struct inst *in, size_t tensor) {
    enum { FEW = 4, MANY = 16 };
    int64_t most = 0;
    for (size_t i = 0; i < in->task->ntensors; i++)
        most = in->tensors[i].count > most ? in->tensors[i].count : most;
    return dtype_info(in->task->tensors[tensor].dtype)->kind == 'f' &&
           in->tensors[tensor].count <= FEW && most >= MANY * in->tensors[tensor].count;
}

/* Parameters that state ones or zeros are varied, so that none may be left out; but as they are
 * stated they meet unusual data as well, or a way that a kernel has for them would meet none. */
static bool stays_stated(const struct inst *in, size_t tensor, enum data_kind kind, uint64_t seed) {
    const struct tensor *t = &in->task->tensors[tensor];
    struct rng r = rng_sub(rng_stream(seed, S("as stated")), kind);
    return t->role == TENSOR_PARAM && (t->dist.kind == DIST_ONES || t->dist.kind == DIST_ZEROS) &&
           kind != DATA_SIGNED && kind != DATA_MIXED && rng_below(r, shape_number(in), 4) == 0;
}

static enum data_kind kind_of(const struct inst *in, size_t tensor, enum data_kind kind,
                              uint64_t seed) {
    if (stays_stated(in, tensor, kind, seed))
        return DATA_STATED;
    switch (kind) {
    case DATA_ZEROS:
    case DATA_SUBNORMAL:
        return is_spared(in, tensor, kind, seed) ? kind_beside(in, kind, seed) : kind;
    case DATA_ONEHOT:
    case DATA_SORTED:
    case DATA_CONSTANT:
    case DATA_TILE:
        return is_scalar(in, tensor) ? DATA_LITERALS : kind;
    default:
        return kind;
    }
}

static bool same_drawn(const struct inst *in, size_t a, size_t b) {
    const struct tensor *x = &in->task->tensors[a], *y = &in->task->tensors[b];
    bool same = is_drawn(x) && is_drawn(y) && x->dtype == y->dtype && x->rank == y->rank &&
                x->dist.kind == y->dist.kind;
    for (size_t k = 0; k < x->rank && same; k++)
        same = in->tensors[a].extent[k] == in->tensors[b].extent[k];
    return same;
}

/* Whose numbers it has: under the tile kind, tensors of one shape have the same but for signs in
 * the tile, so that differences vanish. */
static size_t twin_of(const struct inst *in, size_t tensor, enum data_kind kind) {
    for (size_t i = 0; i < tensor && kind == DATA_TILE; i++)
        if (same_drawn(in, i, tensor))
            return i;
    return tensor;
}

struct source source_of(const struct inst *in, const struct data_scale *scale, size_t tensor,
                        enum data_kind asked, uint64_t seed) {
    const struct tensor *t = &in->task->tensors[tensor];
    const struct bound_tensor *b = &in->tensors[tensor];
    enum data_kind kind = kind_of(in, tensor, asked, seed);
    struct rng own = rng_sub(rng_stream(seed, t->name), asked);
    struct rng r =
        rng_sub(rng_stream(seed, in->task->tensors[twin_of(in, tensor, kind)].name), asked);
    struct source s = {.kind = kind,
                       .dtype = t->dtype,
                       .type = dtype_info(t->dtype)->kind,
                       .dist = t->dist.kind,
                       .factor = scale ? scale->factor[kind] : 1,
                       .largest = scale && scale->largest,
                       .end = scale ? scale->end : 0,
                       .offset_bits = offset_bits(t->dtype, in->task->accuracy),
                       .count = b->count,
                       .row = t->rank ? b->extent[t->rank - 1] : 1,
                       .scalar = kind == DATA_LITERALS && is_scalar(in, tensor)};
    if (s.scalar)
        r = own = rng_sub(r, shape_number(in));
    s.value = rng_sub(r, 0);
    s.choice = rng_sub(own, 1);
    s.place = rng_sub(r, 2);
    dist_numbers(in, tensor, &s.a, &s.b);
    s.magnitude = magnitude_of(&s);
    s.power = exp2(floor(log2(s.magnitude)));
    place_spot(&s);
    place_tile(&s);
    set_group(&s, t, b);
    hold(&s, t, b);
    set_whole(&s);
    set_literals(&s, in->task);
    return s;
}

static void promise_compare(struct promise *p, enum expr_kind op, double number) {
    bool open = op == EXPR_LT || op == EXPR_GT;
    if ((op == EXPR_GT || op == EXPR_GE) && (number > p->lo || (number == p->lo && open))) {
        p->lo = number;
        p->lo_open = open;
    }
    if ((op == EXPR_LT || op == EXPR_LE) && (number < p->hi || (number == p->hi && open))) {
        p->hi = number;
        p->hi_open = open;
    }
}

struct promise promise_of(const struct inst *in, size_t tensor) {
    struct promise p = {.lo = -INFINITY, .hi = INFINITY};
    for (size_t i = 0; i < in->task->nassumptions; i++) {
        const struct assumption *a = &in->task->assumptions[i];
        double number;
        if (a->tensor != tensor)
            continue;
        p.any = true;
        p.symmetric |= a->kind == ASSUME_SYMMETRIC;
        if (a->kind == ASSUME_COMPARE && expr_eval_real(a->number, in->dims, &number))
            promise_compare(&p, a->op, number);
    }
    /* Where places are computed from it, what is folded back stays in the stated range too. */
    const struct tensor *t = &in->task->tensors[tensor];
    if (t->indexes && t->dist.kind != DIST_DEFINED) {
        promise_compare(&p, EXPR_GE, (double)in->tensors[tensor].lo);
        promise_compare(&p, EXPR_LE, (double)in->tensors[tensor].hi);
    }
    return p;
}

/* ---- values of a source, many at a time ----
 *
 * What source_value makes one by one, with the same bits. Draws that every element needs are made
 * in arrays, what concerns a row once a row; elements that are special go one by one through
 * source_value, and so do integers. */

/* Elements first … first + n - 1, and their draws. */
struct many {
    const struct source *s;
    int64_t first;
    size_t n;
    double *v;
    uint64_t choice[SOURCE_MANY];
    double draw[SOURCE_MANY];
};

static void one(const struct many *m, size_t i) {
    m->v[i] = source_value(m->s, m->first + (int64_t)i);
}

static void one_by_one(const struct many *m) {
    for (size_t i = 0; i < m->n; i++)
        one(m, i);
}

static void choose(struct many *m) {
    rng_u64_many(m->s->choice, (uint64_t)m->first, m->n, m->choice);
}

/* from + by·v, and by·(from + v). */
WIDE static void stretch(double *v, size_t n, double from, double by) {
    for (size_t i = 0; i < n; i++)
        v[i] = from + by * v[i];
}

WIDE static void shift(double *v, size_t n, double from, double by) {
    for (size_t i = 0; i < n; i++)
        v[i] = by * (from + v[i]);
}

WIDE static void give_signs(const uint64_t *choice, size_t n, double *v) {
    for (size_t i = 0; i < n; i++)
        v[i] = (choice[i] >> 63 ? -1.0 : 1.0) * v[i];
}

/* ---- as stated, or about so ---- */

static bool is_constant(const struct source *s) {
    return s->dist == DIST_ONES || s->dist == DIST_ZEROS ||
           (s->dist == DIST_UNIFORM && s->a == s->b) || (s->dist == DIST_NORMAL && s->b == 0);
}

/* source_usual; of what is not constant source_stated too. */
static void usual(const struct many *m) {
    const struct source *s = m->s;
    uint64_t first = (uint64_t)m->first;
    if (is_constant(s)) {
        rng_unit_many(s->value, first, m->n, m->v);
        shift(m->v, m->n, 0.5, s->magnitude);
    } else if (s->dist == DIST_NORMAL) {
        rng_normal_many(s->value, first, m->n, m->v);
        stretch(m->v, m->n, s->a, s->b);
    } else if (s->dist == DIST_UNIFORM) {
        rng_unit_many(s->value, first, m->n, m->v);
        stretch(m->v, m->n, s->a, s->b - s->a);
    } else {
        for (size_t i = 0; i < m->n; i++)
            m->v[i] = source_usual(s, m->first + (int64_t)i);
    }
}

/* r is a multiple of 1009 exactly where r times the inverse of 1009 modulo 2^64 is at most
 * (2^64 - 1) / 1009 (Granlund and Montgomery, 1994): no division for each element. */
static bool is_rare(uint64_t r) {
    const uint64_t inverse = UINT64_C(0x60AA7F5D9F148D11);
    return r * inverse <= UINT64_MAX / 1009;
}

/* What of one row lies here: elements [from, to), the first of them in column col. */
struct part {
    size_t from, to;
    int64_t row, col;
};

static bool next_part(const struct many *m, struct part *p) {
    bool begin = p->to == 0;
    p->row = begin ? m->first / m->s->row : p->row + 1;
    p->col = begin ? m->first % m->s->row : 0;
    p->from = p->to;
    int64_t rest = m->s->row - p->col, left = (int64_t)(m->n - p->from);
    p->to = p->from + (size_t)(rest < left ? rest : left);
    return p->from < m->n;
}

static void spiked(struct many *m) {
    const struct source *s = m->s;
    struct part p = {0};
    int64_t spot = s->spot - m->first;
    usual(m);
    choose(m);
    while (next_part(m, &p)) {
        bool peak = source_peak_row(s, p.row);
        for (size_t i = p.from; i < p.to && !peak; i++)
            if (is_rare(m->choice[i]))
                one(m, i);
        int64_t at = (int64_t)p.from + source_peak_place(s, p.row) - p.col;
        if (peak && at >= (int64_t)p.from && at < (int64_t)p.to)
            one(m, (size_t)at);
    }
    if (spot >= 0 && spot < (int64_t)m->n)
        one(m, (size_t)spot);
}

/* Runs and rows of nothing but NaN. */
static void only_nan(struct many *m) {
    const struct source *s = m->s;
    struct part p = {0};
    int64_t last = m->first + (int64_t)m->n - 1;
    for (int64_t run = m->first / NAN_RUN; run <= last / NAN_RUN; run++) {
        int64_t from = run * NAN_RUN - m->first, to = from + NAN_RUN;
        for (int64_t i = from < 0 ? 0 : from; i < to && i < (int64_t)m->n && source_nan_run(s, run);
             i++)
            one(m, (size_t)i);
    }
    while (next_part(m, &p))
        for (size_t i = p.from; i < p.to && source_nan_row(s, p.row); i++)
            one(m, i);
}

/* Rows with a single special element: the others are as usual again. */
static void lone(struct many *m) {
    struct part p = {0};
    while (next_part(m, &p)) {
        int64_t place = source_lone_place(m->s, p.row), at = (int64_t)p.from + place - p.col;
        for (size_t i = p.from; i < p.to && place >= 0; i++)
            if (!isfinite(m->v[i]))
                one(m, i);
        if (place >= p.col && at < (int64_t)p.to)
            one(m, (size_t)at);
    }
}

static void nonfinite(struct many *m) {
    const struct source *s = m->s;
    int64_t third = s->count / 3;
    if (!third) {
        one_by_one(m);
        return;
    }
    usual(m);
    choose(m);
    for (size_t i = 0; i < m->n; i++)
        if (m->choice[i] % 64 == 0)
            one(m, i);
    only_nan(m);
    lone(m);
    for (int k = 0; k < 3; k++) {
        int64_t at = (s->spot + k * third) % s->count - m->first;
        if (at >= 0 && at < (int64_t)m->n)
            one(m, (size_t)at);
    }
}

/* ---- by rows ---- */

static void tiled(struct many *m) {
    const struct source *s = m->s;
    struct part p = {0};
    usual(m);
    for (size_t i = 0; i < m->n; i++)
        m->v[i] = fabs(m->v[i]);
    while (next_part(m, &p)) {
        if (p.row < s->tile_row || p.row >= s->tile_row + s->tile_rows)
            continue;
        for (size_t i = p.from; i < p.to; i++) {
            int64_t col = p.col + (int64_t)(i - p.from);
            if (col >= s->tile_col && col < s->tile_col + s->tile_cols)
                one(m, i);
        }
    }
}

/* A row that is not all infinite has rare infinities, a stretch of them, or none. */
static void infinite(struct many *m) {
    const struct source *s = m->s;
    struct part p = {0};
    int64_t spot = s->spot - m->first;
    usual(m);
    choose(m);
    while (next_part(m, &p)) {
        int row = source_infinite_row(s, p.row);
        uint64_t draw = source_row_draw(s, p.row);
        bool all = row == INFINITE_ALL, some = row == INFINITE_STRETCH;
        for (size_t i = p.from; i < p.to && row != INFINITE_NONE; i++)
            if (all || (some && source_in_stretch(s, draw, p.col + (int64_t)(i - p.from))))
                m->v[i] = source_row_infinity(draw);
            else if (m->choice[i] % 64 == 0)
                one(m, i);
    }
    if (spot >= 0 && spot < (int64_t)m->n)
        one(m, (size_t)spot);
}

static void offset(struct many *m) {
    double ratio = power_of_two(-m->s->offset_bits);
    struct part p = {0};
    rng_unit_many(m->s->value, (uint64_t)m->first, m->n, m->v);
    while (next_part(m, &p)) {
        double mean = source_offset_mean(m->s, p.row);
        for (size_t i = p.from; i < p.to; i++)
            m->v[i] = mean + mean * ((2 * m->v[i] - 1) * ratio);
    }
}

static void one_hot(struct many *m) {
    struct part p = {0};
    while (next_part(m, &p)) {
        uint64_t hot = rng_below(m->s->choice, (uint64_t)p.row, (uint64_t)m->s->row);
        for (size_t i = p.from; i < p.to; i++)
            m->v[i] = (uint64_t)p.col + (i - p.from) == hot ? 1 : 0;
    }
}

static void constant_rows(struct many *m) {
    struct part p = {0};
    while (next_part(m, &p)) {
        int64_t odd = (int64_t)p.from + source_odd_place(m->s, p.row) - p.col;
        double v = source_eighths(rng_u64(m->s->value, (uint64_t)p.row));
        for (size_t i = p.from; i < p.to; i++)
            m->v[i] = v;
        if (source_odd_place(m->s, p.row) >= p.col && odd < (int64_t)p.to)
            one(m, (size_t)odd);
    }
}

static void sorted(struct many *m) {
    struct part p = {0};
    int64_t row = m->s->row;
    rng_unit_many(m->s->value, (uint64_t)m->first, m->n, m->v);
    while (next_part(m, &p)) {
        int64_t place = (p.col + source_sorted_start(m->s, p.row)) % row;
        for (size_t i = p.from; i < p.to; i++) {
            double at = ((double)place + m->v[i]) / (double)row;
            m->v[i] = m->s->magnitude * (2 * at - 1);
            place = place + 1 < row ? place + 1 : 0;
        }
    }
}

/* ---- far from the stated ---- */

/* v holds one draw, which becomes the exponent; `draw` the significand. */
WIDE static void spread(const struct source *s, double span, const double *restrict draw, size_t n,
                        double *restrict v) {
    double magnitude = s->magnitude, most = source_float_most(s->dtype);
    for (size_t i = 0; i < n; i++) {
        int64_t k = (int)floor((2 * v[i] - 1) * span + 0.5);
        double x = magnitude * ((1 + draw[i]) * double_of_bits((uint64_t)(k + 1023) << 52));
        v[i] = x < most ? x : most;
    }
}

static void wide(struct many *m) {
    const struct source *s = m->s;
    rng_unit_many(s->value, (uint64_t)m->first, m->n, m->v);
    rng_unit_many(s->place, (uint64_t)m->first + 16, m->n, m->draw);
    spread(s, source_wide_exponent(s->dtype) * s->factor, m->draw, m->n, m->v);
    choose(m);
    give_signs(m->choice, m->n, m->v);
}

static void far(struct many *m) {
    const struct source *s = m->s;
    double most = source_float_most(s->dtype), power = 0;
    int64_t group = source_far_group(s), last = -1;
    rng_unit_many(s->value, (uint64_t)m->first, m->n, m->v);
    choose(m);
    for (size_t i = 0; i < m->n; i++) {
        int64_t at = (m->first + (int64_t)i) / group;
        double v = source_far_exact(m->choice[i]) ? s->power : s->magnitude * (1 + m->v[i]);
        power = at == last ? power : source_far_power(s, at);
        last = at;
        m->v[i] = fmin(v * power, most);
    }
    give_signs(m->choice, m->n, m->v);
}

static uint64_t below(uint64_t draw, uint64_t n) {
    return (uint64_t)((unsigned __int128)draw * n >> 64);
}

static void literals(struct many *m) {
    const struct source *s = m->s;
    uint64_t draws[SOURCE_MANY];
    struct part p = {0};
    if (s->scalar) {
        one_by_one(m);
        return;
    }
    usual(m);
    choose(m);
    give_signs(m->choice, m->n, m->v);
    rng_u64_many(s->value, (uint64_t)m->first, m->n, draws);
    while (next_part(m, &p)) {
        bool all = source_counts_row(s, p.row);
        uint64_t most = source_counts_most(s, p.row);
        bool pattern = source_row_pattern(s, p.row) != PATTERN_NONE;
        for (size_t i = p.from; i < p.to; i++)
            if (pattern)
                one(m, i);
            else if (all || (m->choice[i] & 5) == 4)
                m->v[i] = (m->choice[i] >> 63 ? -1.0 : 1.0) * (double)(1 + below(draws[i], most));
            else if (m->choice[i] & 1)
                m->v[i] = s->literal[below(draws[i], (uint64_t)s->nliterals)];
            else if (m->choice[i] & 2)
                m->v[i] = s->between * (2 * ((double)(draws[i] >> 11) * 0x1p-53) - 1);
    }
}

static void large(struct many *m) {
    double top = source_large_top(m->s);
    rng_unit_many(m->s->value, (uint64_t)m->first, m->n, m->v);
    stretch(m->v, m->n, 0.5, 0.5);
    shift(m->v, m->n, 0, top);
    choose(m);
    give_signs(m->choice, m->n, m->v);
    for (size_t i = 0; i < m->n && m->s->largest; i++)
        if (is_rare(m->choice[i]))
            one(m, i);
    for (int64_t k = 0; k < 2 && m->s->largest; k++) {
        int64_t at = (m->s->spot + k) % m->s->count - m->first;
        if (at >= 0 && at < (int64_t)m->n)
            one(m, (size_t)at);
    }
}

/* x % bits of an x below 2^24 is x - bits·(x·⌈2^40/bits⌉ / 2^40): the error of the inverse, less
 * than `bits`, times x stays below 2^40. */
WIDE static void shorten(const uint64_t *restrict r, size_t n, unsigned bits, double step,
                         double *restrict v) {
    uint64_t inverse = ((UINT64_C(1) << 40) + bits - 1) / bits, mask = (1u << bits) - 1;
    for (size_t i = 0; i < n; i++) {
        uint64_t x = r[i] >> 40, zeros = x - bits * (x * inverse >> 40);
        v[i] = (double)(int32_t)((r[i] & mask) >> zeros) * step;
    }
}

static void subnormal(struct many *m) {
    uint64_t draws[SOURCE_MANY];
    enum dtype t = m->s->dtype;
    rng_u64_many(m->s->value, (uint64_t)m->first, m->n, draws);
    shorten(draws, m->n, source_subnormal_bits(t), source_subnormal_step(t), m->v);
    choose(m);
    give_signs(m->choice, m->n, m->v);
}

static void zeros(struct many *m) {
    choose(m);
    for (size_t i = 0; i < m->n; i++)
        m->v[i] = (m->choice[i] >> 63 ? -1 : 1) * 0.0;
}

static void reals(struct many *m);

/* Each row by the kind of its group. */
static void mixed(struct many *m) {
    struct part p = {0};
    while (next_part(m, &p)) {
        struct many row;
        struct source s = *m->s;
        s.kind = source_kind_at(m->s, m->first + (int64_t)p.from);
        row.s = &s;
        row.first = m->first + (int64_t)p.from;
        row.n = p.to - p.from;
        row.v = m->v + p.from;
        reals(&row);
    }
}

static void with_signs(struct many *m) {
    usual(m);
    choose(m);
    give_signs(m->choice, m->n, m->v);
}

static void stated(struct many *m) {
    if (is_constant(m->s))
        one_by_one(m);
    else
        usual(m);
}

static void reals(struct many *m) {
    static void (*const of_kind[DATA_COUNT])(struct many * m) = {[DATA_STATED] = stated,
                                                                 [DATA_SIGNED] = with_signs,
                                                                 [DATA_WIDE] = wide,
                                                                 [DATA_ZEROS] = zeros,
                                                                 [DATA_SUBNORMAL] = subnormal,
                                                                 [DATA_LARGE] = large,
                                                                 [DATA_ONEHOT] = one_hot,
                                                                 [DATA_SORTED] = sorted,
                                                                 [DATA_CONSTANT] = constant_rows,
                                                                 [DATA_TILE] = tiled,
                                                                 [DATA_SPIKES] = spiked,
                                                                 [DATA_OFFSET] = offset,
                                                                 [DATA_LITERALS] = literals,
                                                                 [DATA_FAR] = far,
                                                                 [DATA_MIXED] = mixed,
                                                                 [DATA_INFINITE] = infinite,
                                                                 [DATA_NONFINITE] = nonfinite};
    of_kind[m->s->kind](m);
}

void source_value_many(const struct source *s, int64_t first, size_t n, double *out) {
    struct many m;
    BUG_IF(n > SOURCE_MANY);
    m.s = s;
    m.first = first;
    m.n = n;
    m.v = out;
    if (s->type == 'f' && !s->held)
        reals(&m);
    else
        one_by_one(&m);
}

WIDE static void store_f32(double *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        v[i] = v[i] != v[i] ? v[i] : (double)(float)v[i];
}

void source_stored_many(const struct source *s, char type, double *v, size_t n) {
    if (type == 'f' && s->dtype == DTYPE_F32)
        store_f32(v, n);
    else
        for (size_t i = 0; i < n; i++)
            v[i] = source_stored(s, type, v[i]);
}

enum { CHUNK = SOURCE_MANY };

static const char *const names[DATA_COUNT] = {
#define DATA(id, name, what) name,
#include "spec/data.def"
#undef DATA
};

const char *data_name(enum data_kind k) {
    BUG_IF((unsigned)k >= DATA_COUNT);
    return names[k];
}

const char *data_meaning(enum data_kind k) {
    static const char *const meanings[] = {
#define DATA(id, name, what) what,
#include "spec/data.def"
#undef DATA
    };
    BUG_IF((unsigned)k >= DATA_COUNT);
    return meanings[k];
}

bool data_find(str name, enum data_kind *out) {
    for (int i = 0; i < DATA_COUNT; i++)
        if (str_is(name, names[i])) {
            *out = (enum data_kind)i;
            return true;
        }
    return false;
}

/* A tensor being made, and those its definition reads. */
struct maker;
struct making {
    struct maker *m;
    size_t tensor;
    struct source source;
    struct promise promise;
    struct scalar scalar; /* for its definition and conditions */
};
struct maker {
    const struct inst *in;
    const struct data_scale *scale;
    enum data_kind kind;
    uint64_t seed;
    struct making *of[TASK_MAX_TENSORS]; /* made on first use */
};

static double element(struct making *k, int64_t i);

static struct making *making_of(struct maker *m, size_t tensor);

static double read_element(void *ctx, size_t tensor, int64_t linear) {
    return element(making_of(ctx, tensor), linear);
}

static struct making *making_of(struct maker *m, size_t tensor) {
    if (!m->of[tensor]) {
        struct making *k = mem_alloc(sizeof *k);
        k->m = m;
        k->tensor = tensor;
        k->source = source_of(m->in, m->scale, tensor, m->kind, m->seed);
        k->promise = promise_of(m->in, tensor);
        k->scalar.in = m->in;
        k->scalar.read = read_element;
        k->scalar.ctx = m;
        m->of[tensor] = k;
    }
    return m->of[tensor];
}

static void maker_release(struct maker *m) {
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        mem_free(m->of[i]);
}

/* As the tensor's type stores it: its own, whatever the source draws. */
static double stored(const struct making *k, double v) {
    return source_stored(&k->source, dtype_info(k->source.dtype)->kind, v);
}

/* Sets the variables of the left side of `s` to element i. False: the statement defines others. */
static bool place(struct making *k, const struct statement *s, int64_t i) {
    const struct inst *in = k->m->in;
    const struct bound_tensor *b = &in->tensors[k->tensor];
    for (size_t d = 0; d < in->task->tensors[k->tensor].rank; d++) {
        int64_t at = i / b->stride[d] % b->extent[d], constant;
        if (s->position[d] >= 0)
            k->scalar.var[s->position[d]] = at;
        else if (!expr_eval_dims(s->constant[d], in->dims, &constant) || constant != at)
            return false;
    }
    return true;
}

/* Reductions are remembered for a row; conditions of assumptions and definitions hold different
 * variables, so what one left behind never matches the other. */
static double defined(struct making *k, int64_t i) {
    const struct task *t = k->m->in->task;
    for (size_t d = 0; d < t->ndefinitions; d++)
        if (t->definitions[d].tensor == k->tensor && place(k, &t->definitions[d], i))
            return scalar_eval(&k->scalar, t->definitions[d].body);
    return 0;
}

static bool assumed_zero(struct making *k, int64_t i) {
    const struct task *t = k->m->in->task;
    for (size_t a = 0; a < t->nassumptions; a++)
        if (t->assumptions[a].kind == ASSUME_ZERO && t->assumptions[a].tensor == k->tensor &&
            place(k, &t->assumptions[a].s, i) &&
            scalar_eval(&k->scalar, t->assumptions[a].s.body) != 0)
            return true;
    return false;
}

static int64_t mirrored(const struct making *k, int64_t i) {
    size_t rank = k->m->in->task->tensors[k->tensor].rank;
    return promise_mirrors(i, k->m->in->tensors[k->tensor].extent[rank - 1]);
}

static double kept(const struct making *k, double v, int64_t i) {
    return promise_keeps(&k->promise, &k->source, dtype_info(k->source.dtype)->kind, v, i);
}

static double raw(struct making *k, int64_t i) {
    bool by_statement = k->m->in->task->tensors[k->tensor].dist.kind == DIST_DEFINED;
    return by_statement ? source_computed(defined(k, i)) : source_value(&k->source, i);
}

static double element(struct making *k, int64_t i) {
    if (!k->promise.any)
        return stored(k, raw(k, i));
    if (assumed_zero(k, i))
        return 0;
    int64_t from = k->promise.symmetric ? mirrored(k, i) : i;
    return stored(k, kept(k, raw(k, from), from));
}

static void elements(struct making *k, int64_t first, size_t n, double *out) {
    bool by_statement = k->m->in->task->tensors[k->tensor].dist.kind == DIST_DEFINED;
    if (k->promise.any || by_statement) {
        for (size_t l = 0; l < n; l++)
            out[l] = element(k, first + (int64_t)l);
        return;
    }
    source_value_many(&k->source, first, n, out);
    source_stored_many(&k->source, dtype_info(k->source.dtype)->kind, out, n);
}

void data_fill(const struct inst *in, const struct data_scale *scale, size_t tensor,
               enum data_kind kind, uint64_t seed, int64_t first, int64_t count, void *dst) {
    struct maker m = {.in = in, .scale = scale, .kind = kind, .seed = seed};
    struct making *k = making_of(&m, tensor);
    size_t size = dtype_info(k->source.dtype)->bytes;
    double chunk[CHUNK];
    BUG_IF(!tensor_is_input(&in->task->tensors[tensor]));
    BUG_IF(first < 0 || count < 0 || first > in->tensors[tensor].count - count);
    for (int64_t at = 0; at < count; at += CHUNK) {
        int64_t n = count - at < CHUNK ? count - at : CHUNK;
        elements(k, first + at, (size_t)n, chunk);
        data_store(k->source.dtype, chunk, (size_t)n, (char *)dst + (size_t)at * size);
    }
    maker_release(&m);
}

struct filling {
    const struct inst *in;
    const struct data_scale *scale;
    size_t tensor;
    enum data_kind kind;
    uint64_t seed;
    char *dst;
};

static void fill_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    const struct filling *f = ctx;
    size_t size = dtype_info(f->in->task->tensors[f->tensor].dtype)->bytes;
    (void)part;
    data_fill(f->in, f->scale, f->tensor, f->kind, f->seed, first, last - first,
              f->dst + (size_t)first * size);
}

void data_fill_all(const struct inst *in, const struct data_scale *scale, size_t tensor,
                   enum data_kind kind, uint64_t seed, unsigned threads, void *dst) {
    struct filling f = {in, scale, tensor, kind, seed, dst};
    parallel_for(threads, in->tensors[tensor].count, fill_piece, &f);
}
