/* What the values of a tensor are made from, computed once for a tensor, a kind and a seed; the
 * values themselves are in source_value.h. */
#include "spec/source.h"

#include "spec/bind.h"
#include <math.h>

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

static enum data_kind kind_of(const struct inst *in, size_t tensor, enum data_kind kind,
                              uint64_t seed) {
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
