/* Runs instructions: what each computes, which of them run, in how many lanes, and what becomes of
 * results that are out of the ordinary. */
#include "base/checked.h"
#include "base/wide.h"
#include "spec/data.h"
#include "spec/exponential.h"
#include "spec/program.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- the operations of value.h and function.def, a block of lanes at a time ----
 *
 * Every loop calls the one operation for each lane and becomes vector instructions where that
 * operation has no branches. Of an exact result only the value is made. What comes out infinite,
 * NaN or beyond fp32 is settled by the caller. */

typedef const struct reg *const *operands;

/* Of x and y, or of the arguments p, q and s, in each lane. */
#define EACH(operation)                                                                            \
    if (i->exact)                                                                                  \
        for (size_t l = 0; l < n; l++) {                                                           \
            struct value x = lane_of(p, l), y = lane_of(q, l);                                     \
            d->v[l] = (operation).v;                                                               \
            (void)y;                                                                               \
        }                                                                                          \
    else                                                                                           \
        for (size_t l = 0; l < n; l++) {                                                           \
            struct value x = lane_of(p, l), y = lane_of(q, l), result = (operation);               \
            d->v[l] = result.v;                                                                    \
            d->e[l] = result.e;                                                                    \
            (void)y;                                                                               \
        }                                                                                          \
    return

WIDE static void vector_operator(const struct instr *i, struct rules r, struct reg *restrict d,
                                 const struct reg *p, const struct reg *q, size_t n) {
    switch (i->kind) {
    case EXPR_NEG:
        EACH(value_neg(r, x));
    case EXPR_ADD:
        EACH(value_add(r, x, y));
    case EXPR_SUB:
        EACH(value_sub(r, x, y));
    case EXPR_MUL:
        EACH(value_mul(r, x, y));
    case EXPR_DIV:
        EACH(value_div(r, x, y));
    case EXPR_FLOORDIV:
        EACH(value_floordiv(r, x, y));
    case EXPR_MOD:
        EACH(value_mod(r, x, y));
    case EXPR_NOT:
        EACH(value_not(x));
    case EXPR_AND:
        EACH(value_and(x, y));
    case EXPR_OR:
        EACH(value_or(x, y));
    case EXPR_EQ:
        EACH(value_compared(r, x.v == y.v, i->truths, x, y));
    case EXPR_NE:
        EACH(value_compared(r, x.v != y.v, i->truths, x, y));
    case EXPR_LT:
        EACH(value_compared(r, x.v < y.v, i->truths, x, y));
    case EXPR_LE:
        EACH(value_compared(r, x.v <= y.v, i->truths, x, y));
    case EXPR_GT:
        EACH(value_compared(r, x.v > y.v, i->truths, x, y));
    case EXPR_GE:
        EACH(value_compared(r, x.v >= y.v, i->truths, x, y));
    default:
        BUG_IF(true);
    }
}

/* Integers below 2^50 by a divisor that is not 0: the quotient is rounded to a whole number by
 * adding and taking away what leaves no bits for a fraction. The same numbers as floor_remainder's,
 * without its branches. */
static bool floordiv_small(const struct instr *i, double *restrict d, const double *x,
                           const double *y, size_t n) {
    const double whole = 0x1.8p52;
    bool modulo = i->kind == EXPR_MOD, small = true;
    for (size_t l = 0; l < n; l++)
        small &= fabs(x[l]) < 0x1p50 && fabs(y[l]) >= 1;
    for (size_t l = 0; l < n && small; l++) {
        double q = x[l] / y[l] + whole - whole, rest = x[l] - q * y[l];
        double less = rest * y[l] < 0 ? 1 : 0;
        d[l] = modulo ? rest + less * y[l] : q - less;
    }
    return small;
}

WIDE static bool any_above(const double *e, double limit, size_t n) {
    uint64_t above = 0;
    for (size_t l = 0; l < n; l++)
        above += e[l] > limit ? 1 : 0;
    return above > 0;
}

/* Values first: of functions that the library computes one by one, variances still become
 * vectors. */
#define FUNCTION(id, name, args, formula, rule, result, pole, flattens, ...)                       \
    WIDE static void vector_##name(const struct instr *i, struct rules r, struct reg *restrict d,  \
                                   operands in, size_t n) {                                        \
        const struct reg *p = in[0], *q = in[(args) > 1 ? 1 : 0], *s = in[(args) > 2 ? 2 : 0];     \
        for (size_t l = 0; l < n; l++) {                                                           \
            double x = p->v[l], y = q->v[l], z = s->v[l];                                          \
            d->v[l] = formula;                                                                     \
            (void)y;                                                                               \
            (void)z;                                                                               \
        }                                                                                          \
        for (size_t l = 0; l < n && !i->exact; l++) {                                              \
            struct value a = lane_of(p, l), b = lane_of(q, l), c = lane_of(s, l);                  \
            double x = a.v, v = d->v[l];                                                           \
            d->e[l] = rule;                                                                        \
            (void)x;                                                                               \
            (void)v;                                                                               \
            (void)b;                                                                               \
            (void)c;                                                                               \
        }                                                                                          \
        if (!(flattens) || !any_above(p->e, flat_from(r), n))                                      \
            return;                                                                                \
        for (size_t l = 0; l < n; l++)                                                             \
            if (is_hardly_known(r, lane_of(p, l))) {                                               \
                double x = nearer_zero(r, lane_of(p, l)), y = 0, z = 0;                            \
                d->e[l] = change_variance(r, d->v[l], formula, d->e[l]);                           \
                (void)y;                                                                           \
                (void)z;                                                                           \
            }                                                                                      \
    }
#include "spec/function.def"
#undef FUNCTION

static void vector_call(const struct instr *i, struct rules r, struct reg *d, operands a,
                        size_t n) {
    static void (*const calls[FUNCTION_COUNT])(const struct instr *, struct rules, struct reg *,
                                               operands, size_t) = {
#define FUNCTION(id, name, ...) vector_##name,
#include "spec/function.def"
#undef FUNCTION
    };
    calls[i->function](i, r, d, a, n);
}

static void vector_node(const struct instr *i, struct rules r, struct reg *d, operands a,
                        size_t n) {
    bool divides = i->kind == EXPR_FLOORDIV || i->kind == EXPR_MOD;
    if (i->type == VALUE_INT)
        r = integer_rules(r);
    if (i->kind == EXPR_CALL)
        vector_call(i, r, d, a, n);
    else if (divides && floordiv_small(i, d->v, a[0]->v, a[1]->v, n))
        for (size_t l = 0; l < n && !i->exact; l++)
            d->e[l] = a[0]->e[l] + a[1]->e[l] > 0 ? INFINITY : 0;
    else
        vector_operator(i, r, d, a[0], a[i->nargs > 1 ? 1 : 0], n);
}

static void vector_select(const struct instr *i, struct reg *d, operands a, size_t n) {
    const struct reg *p = a[1], *q = a[2];
    EACH(value_if(lane_of(a[0], l), x, y));
}

static void vector_convert(const struct instr *i, struct rules r, struct reg *d,
                           const struct reg *p, size_t n) {
    const struct reg *q = p;
    if (i->op == OP_TO_REAL) {
        EACH(value_to_real(r, x));
    }
    EACH(value_factor(r, x));
}

/* One instruction of kind OP_NODE, OP_TO_REAL, OP_ROUND or OP_SELECT, for n lanes. */
static void vector_run(const struct instr *i, const struct rules *r, struct reg *d, operands a,
                       size_t n) {
    if (i->op == OP_NODE)
        vector_node(i, *r, d, a, n);
    else if (i->op == OP_SELECT)
        vector_select(i, d, a, n);
    else
        vector_convert(i, *r, d, a[0], n);
}

/* Counted, not searched for: what is rare costs no branch, and integers add in any order. */
WIDE bool vector_ordinary(const struct reg *d, bool errors, double most, size_t n) {
    uint64_t odd = 0;
    for (size_t l = 0; l < n; l++)
        odd += fabs(d->v[l]) <= most ? 0 : 1;
    for (size_t l = 0; l < n && errors; l++)
        odd += d->e[l] <= DBL_MAX ? 0 : 1;
    return odd == 0;
}

/* Some lane holds an infinity that a kernel may have as NaN. */
static WIDE bool vector_any_open(const struct reg *a, size_t n) {
    uint64_t open = 0;
    for (size_t l = 0; l < n; l++)
        open += ((fabs(a->v[l]) > DBL_MAX) & (a->e[l] > 0)) ? 1 : 0;
    return open > 0;
}

/* ---- reads ----
 *
 * One element, a run of them, elements a stride apart, or each lane at a place of its own. Lanes
 * beyond a pad's edge take the pad's value; lanes beyond the tensor, which only occur where the
 * result is never used, are undefined (program.h, invariant 3). */

/* Lanes [from, to) of a block. */
struct span {
    size_t from, to;
};

static int64_t div_up(int64_t a, int64_t b) {
    return a / b + (a % b > 0);
}

/* Where 0 <= first + step·lane < extent. */
static struct span span_inside(int64_t first, int64_t step, int64_t extent, size_t n) {
    int64_t from = 0, to = (int64_t)n, over;
    if (step == 0) {
        bool inside = first >= 0 && first < extent;
        return (struct span){0, inside ? n : 0};
    }
    if (!sub_i64(extent, first, &over) || first == INT64_MIN)
        return (struct span){0, 0};
    if (step > 0) {
        from = first >= 0 ? 0 : div_up(-first, step);
        to = over <= 0 ? 0 : div_up(over, step);
    } else {
        from = over > 0 ? 0 : div_up(1 - over, -step);
        to = first < 0 ? 0 : first / -step + 1;
    }
    from = from > (int64_t)n ? (int64_t)n : from;
    to = to > (int64_t)n ? (int64_t)n : to;
    return (struct span){(size_t)from, to > from ? (size_t)to : (size_t)from};
}

static int64_t step_of(const struct machine *m, const struct affine *a) {
    return m->p->lane < 0 ? 0 : a->coef[m->p->lane];
}

static struct span span_meet(struct span a, struct span b) {
    struct span s = {a.from > b.from ? a.from : b.from, a.to < b.to ? a.to : b.to};
    s.to = s.to > s.from ? s.to : s.from;
    return s;
}

/* The lanes within all edges of a pad. */
static struct span span_of(const struct machine *m, const struct instr *i, size_t n) {
    struct span s = {0, n};
    for (size_t k = 0; k < i->nedges; k++) {
        const struct edge *e = &m->p->edges[i->edge + k];
        int64_t first;
        if (!affine_at(&e->at, m->at, &first))
            return (struct span){0, 0};
        s = span_meet(s, span_inside(first, step_of(m, &e->at), e->extent, n));
    }
    return s;
}

static void load_floats(const float *from, int64_t step, size_t n, double *to) {
    if (step == 1)
        for (size_t l = 0; l < n; l++)
            to[l] = (double)from[l];
    else
        for (size_t l = 0; l < n; l++)
            to[l] = (double)from[(int64_t)l * step];
}

static void load_doubles(const double *from, int64_t step, size_t n, double *to) {
    if (step == 1)
        memcpy(to, from, n * sizeof *to);
    else
        for (size_t l = 0; l < n; l++)
            to[l] = from[(int64_t)l * step];
}

static void load_strided(enum dtype t, const void *from, int64_t step, size_t n, double *to) {
    size_t size = dtype_info(t)->bytes;
    uint64_t raw[LANES];
    if (t == DTYPE_F32)
        load_floats(from, step, n, to);
    else if (t == DTYPE_F64)
        load_doubles(from, step, n, to);
    else if (step == 1)
        data_load(t, from, n, to);
    else {
        for (size_t l = 0; l < n; l++)
            memcpy((char *)raw + l * size, (const char *)from + (int64_t)l * step * (int64_t)size,
                   size);
        data_load(t, raw, n, to);
    }
}

static void note_stage_peaks(struct machine *m, const struct instr *i, int64_t first, int64_t step,
                             struct span s) {
    const double *peak = m->contents[i->ref].peak;
    const struct reg *mask = i->mask < 0 ? NULL : &m->regs[i->mask];
    if (!peak || !m->p->track_peak)
        return;
    size_t to = i->uniform && s.to > s.from ? m->n : s.to;
    for (size_t l = s.from; l < to; l++)
        if (!mask || mask->v[l] != 0)
            machine_note_peak(m, l, peak[first + (i->uniform ? 0 : (int64_t)l * step)]);
}

/* Lanes of s; all of them lie inside. */
static void load_span(struct machine *m, const struct instr *i, struct reg *d, int64_t first,
                      int64_t step, struct span s) {
    const struct content *from = &m->contents[i->ref];
    size_t size = dtype_info(from->dtype)->bytes, n = s.to - s.from;
    int64_t at = first + step * (int64_t)s.from;
    if (n == 0)
        return;
    load_strided(from->dtype, (const char *)from->value + (size_t)at * size, step, n,
                 d->v + s.from);
    if (from->variance)
        load_doubles(from->variance + at, step, n, d->e + s.from);
    else if (!i->exact)
        for (size_t l = s.from; l < s.to; l++)
            d->e[l] = from->dtype == DTYPE_F64 ? input_variance(m->p->rules, d->v[l]) : 0;
    note_stage_peaks(m, i, first, step, s);
}

static void fill_outside(const struct instr *i, struct reg *d, const struct reg *pad, struct span s,
                         size_t n) {
    for (size_t l = 0; l < n; l++) {
        if (l == s.from)
            l = s.to;
        if (l >= n)
            return;
        d->v[l] = pad ? pad->v[l] : 0;
        if (!i->exact)
            d->e[l] = pad ? pad->e[l] : INFINITY;
    }
}

static void read_affine(struct machine *m, const struct instr *i, struct reg *d, size_t n) {
    const struct reg *pad = i->padded ? &m->regs[i->src[i->nplaces]] : NULL;
    int64_t first, step = step_of(m, &i->place);
    struct span s = span_of(m, i, n);
    if (!affine_at(&i->place, m->at, &first) || !sub_i64(first, m->contents[i->ref].first, &first))
        s = (struct span){0, 0};
    else
        s = span_meet(s, span_inside(first, step, m->contents[i->ref].count, n));
    if (s.from > 0 || s.to < n)
        fill_outside(i, d, pad, s, n);
    load_span(m, i, d, first, step, s);
}

/* The place of lane l; false: beyond an edge. */
static bool place_of(const struct machine *m, const struct instr *i, int64_t first, size_t l,
                     int64_t *place) {
    int64_t part;
    if (!mul_i64(step_of(m, &i->place), (int64_t)l, &part) || !add_i64(first, part, place))
        return false;
    for (size_t k = 0; k < i->nplaces; k++) {
        double at = m->regs[i->src[k]].v[l];
        bool inside = at >= 0 && at < (double)i->extent[k];
        if (!inside || !mul_i64((int64_t)at, i->stride[k], &part) || !add_i64(*place, part, place))
            return false;
    }
    return sub_i64(*place, m->contents[i->ref].first, place) && *place >= 0 &&
           *place < m->contents[i->ref].count;
}

/* Nothing is known of an element whose place is uncertain. */
static bool place_uncertain(const struct machine *m, const struct instr *i, size_t l) {
    for (size_t k = 0; k < i->nplaces; k++)
        if (m->regs[i->src[k]].e[l] > 0)
            return true;
    return false;
}

static void read_lane(struct machine *m, const struct instr *i, struct reg *d, int64_t place,
                      size_t l) {
    const struct content *from = &m->contents[i->ref];
    size_t size = dtype_info(from->dtype)->bytes;
    data_load(from->dtype, (const char *)from->value + (size_t)place * size, 1, &d->v[l]);
    if (i->exact)
        return;
    d->e[l] = from->variance             ? from->variance[place]
              : from->dtype == DTYPE_F64 ? input_variance(m->p->rules, d->v[l])
                                         : 0;
    if (place_uncertain(m, i, l))
        d->e[l] = INFINITY;
}

static void read_scattered(struct machine *m, const struct instr *i, struct reg *d, size_t n) {
    const struct reg *pad = i->padded ? &m->regs[i->src[i->nplaces]] : NULL;
    struct span s = span_of(m, i, n);
    int64_t first, place;
    if (!affine_at(&i->place, m->at, &first))
        s = (struct span){0, 0};
    fill_outside(i, d, pad, s, n);
    for (size_t l = s.from; l < s.to; l++) {
        if (place_of(m, i, first, l, &place))
            read_lane(m, i, d, place, l);
        else
            fill_outside(i, d, pad, (struct span){0, l}, l + 1);
    }
}

static void machine_read(struct machine *m, const struct instr *i, struct reg *d, size_t n) {
    if (i->nplaces == 0)
        read_affine(m, i, d, n);
    else
        read_scattered(m, i, d, n);
}

static void fill(double *d, double v, size_t n) {
    for (size_t l = 0; l < n; l++)
        d[l] = v;
}

static void run_literal(const struct rules *r, const struct instr *i, struct reg *d) {
    d->v[0] = i->number;
    if (!i->exact)
        d->e[0] = value_literal(*r, i->number).e;
}

static void run_index(const struct machine *m, const struct instr *i, struct reg *d, size_t n) {
    double first = (double)m->at[i->ref], step = (int)i->ref == m->p->lane;
    for (size_t l = 0; l < n; l++)
        d->v[l] = first + step * (double)l;
}

static void run_mask(const struct machine *m, const struct instr *i, struct reg *d,
                     const struct reg *cond, size_t n) {
    const struct reg *outer = i->mask < 0 ? NULL : &m->regs[i->mask];
    bool wanted = i->op == OP_MASK_THEN;
    for (size_t l = 0; l < n; l++)
        d->v[l] = (!outer || outer->v[l] != 0) && ((cond->v[l] != 0) == wanted || cond->e[l] > 0);
}

static struct value operand_of(const struct instr *i, const struct reg *const *a, size_t k,
                               size_t l) {
    return k < i->nargs ? lane_of(a[k], l) : value_of(0, 0);
}

/* Looks at results again where one is out of the ordinary, or an operand is an open infinity. */
static void settle(struct machine *m, const struct instr *i, struct reg *d,
                   const struct reg *const *a, size_t n) {
    bool look = i->type != VALUE_BOOL && !vector_ordinary(d, true, settle_most(i->how), n);
    for (size_t k = 0; k < i->nargs && m->odd && !look; k++)
        look = vector_any_open(a[k], n);
    for (size_t l = 0; l < n && look; l++) {
        struct value x = settle_of(m->p->rules, i->how, lane_of(d, l), operand_of(i, a, 0, l),
                                   operand_of(i, a, 1, l), operand_of(i, a, 2, l));
        d->e[l] = x.e;
        m->odd |= is_open(x);
    }
}

/* Infinite by itself, not because it overflowed. */
static bool is_pole(const struct instr *i, const struct reg *const *a, size_t l) {
    return at_pole(i->how, operand_of(i, a, 0, l).v, operand_of(i, a, 1, l).v);
}

static double lane_peak(const struct instr *i, const struct reg *d, const struct reg *const *a,
                        size_t l) {
    double v = fabs(d->v[l]);
    bool operands_finite = true;
    for (size_t k = 0; k < i->nargs; k++)
        operands_finite &= isfinite(a[k]->v[l]);
    if (isnan(v))
        return 0;
    if (isinf(v))
        return operands_finite && i->op == OP_NODE && !is_pole(i, a, l) ? v : 0;
    bool narrow = i->op == OP_NODE && i->type == VALUE_INT && !i->wide;
    return narrow && v > INT32_MAX ? INFINITY : v;
}

void machine_note_peak(struct machine *m, size_t lane, double v) {
    m->peak[lane] = v > m->peak[lane] ? v : m->peak[lane];
}

WIDE static void raise_all(double *restrict peak, const double *restrict v, size_t n) {
    for (size_t l = 0; l < n; l++)
        peak[l] = fabs(v[l]) > peak[l] ? fabs(v[l]) : peak[l];
}

/* Reads of lets were counted where the let was made; reads of reductions bring their peak along
 * (machine_read has noted it). */
static void note_peaks(struct machine *m, const struct instr *i, const struct reg *d,
                       const struct reg *const *a) {
    const struct reg *mask = i->mask < 0 ? NULL : &m->regs[i->mask];
    if (i->type == VALUE_BOOL || (i->op == OP_READ && m->contents[i->ref].variance))
        return;
    if (i->op != OP_READ && i->op != OP_TO_REAL && i->op != OP_NODE)
        return;
    bool plain =
        !mask && !i->uniform && i->type == VALUE_REAL && vector_ordinary(d, false, DBL_MAX, m->n);
    if (plain)
        raise_all(m->peak, d->v, m->n);
    for (size_t l = 0; l < m->n && !plain; l++)
        if (!mask || mask->v[l] != 0)
            machine_note_peak(m, l, lane_peak(i, d, a, i->uniform ? 0 : l));
}

static void compute(struct machine *m, const struct instr *i, struct reg *d,
                    const struct reg *const *a, size_t n) {
    const struct rules *r = &m->p->rules;
    switch (i->op) {
    case OP_LITERAL:
        run_literal(r, i, d);
        return;
    case OP_INDEX:
        run_index(m, i, d, n);
        return;
    case OP_READ:
        machine_read(m, i, d, n);
        return;
    case OP_MASK_THEN:
    case OP_MASK_ELSE:
        run_mask(m, i, d, a[0], n);
        return;
    case OP_TO_REAL:
    case OP_ROUND:
    case OP_SELECT:
        vector_run(i, r, d, a, n);
        return;
    case OP_NODE:
        vector_run(i, r, d, a, n);
        if (!i->exact)
            settle(m, i, d, a, n);
        return;
    }
}

/* Somebody wants to know after all what became of a product. */
static void compute_product(struct machine *m, const struct instr *i, struct reg *d,
                            const struct reg *const *a) {
    struct instr plain = *i;
    plain.summed = false;
    for (size_t k = 0; k < 2; k++)
        if (i->lone[k])
            fill(m->regs[i->src[k]].v, a[k]->v[0], m->n);
    compute(m, &plain, d, a, i->uniform ? 1 : m->n);
}

static void run_one(struct machine *m, const struct instr *i) {
    struct reg *d = &m->regs[i->dst];
    const struct reg *a[TASK_MAX_RANK + 1];
    for (size_t k = 0; k < i->nargs; k++)
        a[k] = &m->regs[i->src[k]];
    if (i->summed && !m->careful)
        return;
    if (i->summed)
        compute_product(m, i, d, a);
    else
        compute(m, i, d, a, i->uniform ? 1 : m->n);
    if (i->uniform && i->spread) {
        /* What stays may meet longer blocks than this one. */
        size_t n = i->level < m->p->inner ? LANES : m->n;
        fill(d->v, d->v[0], n);
        if (!i->exact)
            fill(d->e, d->e[0], n);
    }
    if (m->p->track_peak)
        note_peaks(m, i, d, a);
}

void machine_run(struct machine *m, size_t first, size_t last, unsigned level) {
    for (size_t k = first; k < last; k++)
        if (m->p->code[k].level >= level)
            run_one(m, &m->p->code[k]);
}

/* What depends on nothing runs here, once. */
bool machine_init(struct machine *m, const struct program *p, const struct content *contents) {
    *m = (struct machine){.p = p, .contents = contents, .n = LANES};
    for (size_t k = 0; k < p->n; k++)
        m->odd |= p->code[k].op == OP_READ && !contents[p->code[k].ref].finite;
    m->regs = mem_try_resize(NULL, (p->nregs + 1) * sizeof *m->regs);
    if (!m->regs)
        return false;
    memset(m->regs, 0, (p->nregs + 1) * sizeof *m->regs);
    for (size_t k = 0; k < p->n; k++)
        if (p->code[k].level == 0)
            run_one(m, &p->code[k]);
    memset(m->peak, 0, sizeof m->peak);
    return true;
}

void machine_release(struct machine *m) {
    mem_free(m->regs);
    m->regs = NULL;
}
