/* The operations of value.h and function.def, a block of lanes at a time.
 *
 * Every loop calls the one operation for each lane and becomes vector instructions where that
 * operation has no branches. Of an exact result only the value is made. What comes out infinite,
 * NaN or beyond fp32 is settled by the caller. */
#include "base/wide.h"

#include "spec/exponential.h"
#include "spec/program.h"

#include <float.h>
#include <math.h>

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

void vector_run(const struct instr *i, const struct rules *r, struct reg *d, operands a, size_t n) {
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

WIDE bool vector_any_open(const struct reg *a, size_t n) {
    uint64_t open = 0;
    for (size_t l = 0; l < n; l++)
        open += ((fabs(a->v[l]) > DBL_MAX) & (a->e[l] > 0)) ? 1 : 0;
    return open > 0;
}
