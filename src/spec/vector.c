/* Arithmetic of value and error, a block at a time.
 *
 * For each operation: the value in fp64; the variance of its operands through the derivative; and
 * the roundings that an honest fp32 evaluation adds, in units u = 2^-24 (docs/TASKS.md has the
 * table). Variances are squares of absolute errors, so quadrature is plain addition. What comes out
 * not finite here is settled by the caller. */
#include "base/wide.h"

#include "spec/exponential.h"
#include "spec/program.h"

#include <float.h>
#include <math.h>

typedef const struct reg *const *operands;

WIDE static void vector_add(const struct instr *i, const struct rules *r, struct reg *restrict d,
                            operands a, double sign, size_t n) {
    double unit = i->type == VALUE_INT ? 0 : r->unit2;
    const struct reg *x = a[0], *y = a[1];
    for (size_t l = 0; l < n; l++)
        d->v[l] = x->v[l] + sign * y->v[l];
    if (!i->exact)
        for (size_t l = 0; l < n; l++)
            d->e[l] = x->e[l] + y->e[l] + unit * d->v[l] * d->v[l];
}

WIDE static void vector_mul(const struct instr *i, const struct rules *r, struct reg *restrict d,
                            operands a, size_t n) {
    bool integer = i->type == VALUE_INT;
    double unit = integer ? 0 : r->unit2, least = integer ? 0 : r->least2;
    const struct reg *x = a[0], *y = a[1];
    for (size_t l = 0; l < n; l++)
        d->v[l] = x->v[l] * y->v[l];
    if (i->exact)
        return;
    /* Both factors may be off by their worst at once, which counts where both are hardly known. */
    double both = r->limits.worst * r->limits.worst;
    for (size_t l = 0; l < n; l++) {
        double exact = d->v[l] == 0 ? 0 : least;
        d->e[l] = x->v[l] * x->v[l] * y->e[l] + y->v[l] * y->v[l] * x->e[l] +
                  both * x->e[l] * y->e[l] + unit * d->v[l] * d->v[l] + exact;
    }
}

WIDE static void vector_div(const struct rules *r, struct reg *d, operands a, size_t n) {
    for (size_t l = 0; l < n; l++) {
        double x = a[0]->v[l], y = a[1]->v[l], v = x / y;
        double own = r->unit2 * v * v + (x == 0 ? 0 : r->least2);
        double through = a[0]->e[l] + v * v * a[1]->e[l];
        d->v[l] = v;
        d->e[l] = through == 0 ? own : through / (y * y) + own;
        if (vector_within(y, a[1]->e[l], r->limits.worst))
            d->e[l] = INFINITY;
    }
}

/* Integers as doubles: exact up to 2^53, and beyond that the caller gives up. The quotient is
 * rounded to a whole number by adding and taking away what leaves no bits for a fraction. */
static void floordiv_small(bool modulo, double *restrict d, const double *x, const double *y,
                           size_t n) {
    const double whole = 0x1.8p52;
    for (size_t l = 0; l < n; l++) {
        double q = x[l] / y[l] + whole - whole, rest = x[l] - q * y[l];
        double less = rest * y[l] < 0 ? 1 : 0;
        d[l] = modulo ? rest + less * y[l] : q - less;
    }
}

static void vector_floordiv(const struct instr *i, struct reg *d, operands a, size_t n) {
    bool modulo = i->kind == EXPR_MOD, small = true;
    for (size_t l = 0; l < n; l++)
        small &= fabs(a[0]->v[l]) < 0x1p50 && fabs(a[1]->v[l]) >= 1;
    if (small)
        floordiv_small(modulo, d->v, a[0]->v, a[1]->v, n);
    for (size_t l = 0; l < n && !small; l++) {
        double x = a[0]->v[l], y = a[1]->v[l], r = fmod(x, y);
        if (r != 0 && (r < 0) != (y < 0))
            r += y;
        d->v[l] = y == 0 ? NAN : modulo ? r : (x - r) / y;
    }
    for (size_t l = 0; l < n && !i->exact; l++)
        d->e[l] = a[0]->e[l] + a[1]->e[l] > 0 ? INFINITY : 0;
}

static void compare_values(enum expr_kind kind, double *restrict d, const double *x,
                           const double *y, size_t n) {
#define COMPARE(op)                                                                                \
    for (size_t l = 0; l < n; l++)                                                                 \
        d[l] = x[l] op y[l] ? 1.0 : 0.0;                                                           \
    return
    switch (kind) {
    case EXPR_EQ:
        COMPARE(==);
    case EXPR_NE:
        COMPARE(!=);
    case EXPR_LT:
        COMPARE(<);
    case EXPR_LE:
        COMPARE(<=);
    case EXPR_GT:
        COMPARE(>);
    default:
        COMPARE(>=);
    }
#undef COMPARE
}

static void vector_compare(const struct instr *i, const struct rules *r, struct reg *d, operands a,
                           bool truths, size_t n) {
    compare_values(i->kind, d->v, a[0]->v, a[1]->v, n);
    for (size_t l = 0; l < n && !i->exact; l++) {
        double e = a[0]->e[l] + a[1]->e[l];
        d->e[l] = isinf(e) ||
                  (truths ? e > 0 : vector_within(a[0]->v[l] - a[1]->v[l], e, r->limits.worst));
    }
}

/* Certain as soon as one certain side decides. */
static void vector_logic(const struct instr *i, struct reg *d, operands a, size_t n) {
    double decides = i->kind == EXPR_OR;
    for (size_t l = 0; l < n; l++) {
        bool x = a[0]->v[l] != 0, y = a[1]->v[l] != 0;
        d->v[l] = decides ? x | y : x & y;
    }
    for (size_t l = 0; l < n && !i->exact; l++) {
        bool decided = (a[0]->v[l] == decides && a[0]->e[l] == 0) ||
                       (a[1]->v[l] == decides && a[1]->e[l] == 0);
        d->e[l] = !decided && a[0]->e[l] + a[1]->e[l] > 0;
    }
}

static void copy_error(const struct instr *i, struct reg *d, const struct reg *a, size_t n) {
    for (size_t l = 0; l < n && !i->exact; l++)
        d->e[l] = a->e[l];
}

/* A function of one argument x with value v and derivative s: its result is off by `of_result`
 * units of itself, by `of_argument` units of the argument, by `absolute` units of one, and by
 * `least` near the end of the range. */
#define UNARY(name, value, slope, of_result, of_argument, absolute, least)                         \
    WIDE static void unary_##name(const struct rules *r, struct reg *restrict d,                   \
                                  const struct reg *restrict a, size_t n) {                        \
        double unit2 = r->unit2;                                                                   \
        for (size_t l = 0; l < n; l++) {                                                           \
            double x = a->v[l];                                                                    \
            d->v[l] = (value);                                                                     \
        }                                                                                          \
        for (size_t l = 0; l < n; l++) {                                                           \
            double x = a->v[l], v = d->v[l], s = (slope);                                          \
            double ours = (of_result) * (of_result)*v * v + (absolute) * (absolute);               \
            if ((of_argument) != 0)                                                                \
                ours += (of_argument) * (of_argument)*x * x * s * s;                               \
            d->e[l] =                                                                              \
                (a->e[l] > 0 ? s * s * a->e[l] : 0) + unit2 * (ours + (least) * (least)*0x1p48);   \
        }                                                                                          \
    }

UNARY(exp, exponential(x), v, 2.0, 1.0, 0.0, 0x1p-148)
UNARY(log, log(x), 1 / x, 2.0, 1.0, 0.0, 0.0)
UNARY(sqrt, sqrt(x), 0.5 / v, 1.0, 0.0, 0.0, 0.0)
UNARY(rsqrt, 1 / sqrt(x), -0.5 * v / x, 2.0, 0.0, 0.0, 0.0)
UNARY(tanh, exp_tangent(x), 1 - v * v, 2.0, 1.0, 1.0, 0x1p-149)
UNARY(erf, erf(x), 1.1283791670955126 * exponential(-x * x), 2.0, 1.0, 0.0, 0x1p-149)
UNARY(sigmoid, exp_sigmoid(x), v *(1 - v), 3.0, 1.0, 0.0, 0x1p-130)
UNARY(sin, sin(x), cos(x), 2.0, 0.0, 0.5, 0x1p-149)
UNARY(cos, cos(x), sin(x), 2.0, 0.0, 0.5, 0x1p-149)
UNARY(expm1, expm1(x), v + 1, 2.0, 1.0, 1.0, 0x1p-149)
UNARY(log1p, log1p(x), 1 / (1 + x), 2.0, 1.0, 1.0, 0x1p-149)
#undef UNARY

WIDE static bool any_above(const double *e, double limit, size_t n) {
    uint64_t above = 0;
    for (size_t l = 0; l < n; l++)
        above += e[l] > limit ? 1 : 0;
    return above > 0;
}

/* A function that is steepest at 0 and flat far from it: where its argument is not known well, its
 * slope there says nothing of what it is nearer to 0, and the change over that distance counts; a
 * tenth more of it, since what a whole step is multiplied with is not exact either. */
static void bend(const struct rules *r, struct reg *d, const struct reg *a, double (*f)(double),
                 size_t n) {
    double known = 0.1 / r->limits.worst;
    if (!any_above(a->e, known * known, n))
        return;
    for (size_t l = 0; l < n; l++) {
        if (!(a->e[l] > known * known) || isinf(a->e[l]))
            continue;
        double reach = r->limits.worst * sqrt(a->e[l]);
        double change = 1.1 * (f(a->v[l] - copysign(reach, a->v[l])) - d->v[l]) / r->limits.worst;
        d->e[l] = fmax(d->e[l], change * change);
    }
}

static void vector_unary(enum function f, const struct rules *r, struct reg *d, const struct reg *a,
                         size_t n) {
    switch (f) {
    case FUNCTION_EXP:
        unary_exp(r, d, a, n);
        return;
    case FUNCTION_LOG:
        unary_log(r, d, a, n);
        return;
    case FUNCTION_SQRT:
        unary_sqrt(r, d, a, n);
        return;
    case FUNCTION_RSQRT:
        unary_rsqrt(r, d, a, n);
        return;
    case FUNCTION_TANH:
        unary_tanh(r, d, a, n);
        return;
    case FUNCTION_ERF:
        unary_erf(r, d, a, n);
        return;
    case FUNCTION_SIGMOID:
        unary_sigmoid(r, d, a, n);
        return;
    case FUNCTION_SIN:
        unary_sin(r, d, a, n);
        return;
    case FUNCTION_COS:
        unary_cos(r, d, a, n);
        return;
    case FUNCTION_EXPM1:
        unary_expm1(r, d, a, n);
        return;
    case FUNCTION_LOG1P:
        unary_log1p(r, d, a, n);
        return;
    default:
        BUG_IF(true);
    }
}

/* Where an uncertain argument may lie on the other side of the domain's edge, nothing is known. */
static void close_domain(const struct rules *r, struct reg *d, const struct reg *a, double edge,
                         size_t n) {
    for (size_t l = 0; l < n; l++)
        if (vector_within(a->v[l] - edge, a->e[l], r->limits.worst))
            d->e[l] = INFINITY;
}

/* A step where the argument may lie on either side of one: of `jump`, at whole numbers plus
 * `offset`, or, for the sign, at zero. */
static void vector_step(const struct instr *i, const struct rules *r, struct reg *d,
                        const struct reg *a, size_t n) {
    enum function f = i->function;
    for (size_t l = 0; l < n; l++) {
        double x = a->v[l];
        d->v[l] = f == FUNCTION_FLOOR   ? floor(x)
                  : f == FUNCTION_CEIL  ? ceil(x)
                  : f == FUNCTION_ROUND ? rint(x)
                                        : (double)((x > 0) - (x < 0));
    }
    for (size_t l = 0; l < n && !i->exact; l++) {
        double x = a->v[l], e = a->e[l], offset = f == FUNCTION_ROUND ? 0.5 : 0;
        double distance = f == FUNCTION_SIGN ? x : x + offset - rint(x + offset);
        double jump2 = f == FUNCTION_SIGN ? 4 : 1 + e;
        d->e[l] = isinf(e) || vector_within(distance, e, r->limits.worst) ? jump2 : 0;
        if (isinf(e))
            d->e[l] = INFINITY;
    }
}

static void vector_pow(const struct rules *r, struct reg *d, operands a, size_t n) {
    for (size_t l = 0; l < n; l++) {
        double x = a[0]->v[l], y = a[1]->v[l], v = pow(x, y);
        double logarithm = x == 0 ? 0 : log(fabs(x));
        double by_x = a[0]->e[l] > 0 ? y * v / x : 0, by_y = a[1]->e[l] > 0 ? v * logarithm : 0;
        double scaled = y * logarithm * v;
        bool edge = y != floor(y) || y < 1;
        d->v[l] = v;
        d->e[l] = by_x * by_x * a[0]->e[l] + by_y * by_y * a[1]->e[l] +
                  r->unit2 * (16 * v * v + scaled * scaled) + (v == 0 && x == 0 ? 0 : r->least2);
        if (x == 0 && !edge && isfinite(y))
            d->e[l] = a[0]->e[l];
        if (edge && vector_within(x, a[0]->e[l], r->limits.worst))
            d->e[l] = INFINITY;
    }
}

/* The larger (want = 1) or the smaller (-1) of two; NaN wins, as in PyTorch. */
WIDE static void pick_exact(double *restrict d, const double *x, const double *y, double want,
                            size_t n) {
    for (size_t l = 0; l < n; l++) {
        double a = x[l], b = y[l];
        bool first = (a != a) | ((b == b) & (want * a >= want * b));
        d[l] = first ? a : b;
    }
}

/* Where either may be the one, the less certain counts. */
static void pick(const struct instr *i, const struct rules *r, struct reg *d, const struct reg *x,
                 const struct reg *y, double want, size_t n) {
    if (i->exact) {
        pick_exact(d->v, x->v, y->v, want, n);
        return;
    }
    for (size_t l = 0; l < n; l++) {
        double a = x->v[l], b = y->v[l];
        bool first = isnan(a) || (!isnan(b) && want * a >= want * b);
        d->v[l] = first ? a : b;
        double ea = x->e[l], eb = y->e[l], e = first ? ea : eb, other = first ? eb : ea;
        if (other > e && (isinf(other) || vector_within(a - b, ea + eb, r->limits.worst)))
            e = other;
        d->e[l] = e;
    }
}

static void vector_clamp(const struct instr *i, const struct rules *r, struct reg *d, operands a,
                         size_t n) {
    struct reg t;
    for (size_t l = 0; l < n; l++)
        t.e[l] = 0;
    pick(i, r, &t, a[0], a[1], 1, n);
    pick(i, r, d, &t, a[2], -1, n);
}

static void vector_call(const struct instr *i, const struct rules *r, struct reg *d, operands a,
                        size_t n) {
    switch (i->function) {
    case FUNCTION_ABS:
        for (size_t l = 0; l < n; l++)
            d->v[l] = fabs(a[0]->v[l]);
        copy_error(i, d, a[0], n);
        return;
    case FUNCTION_FLOOR:
    case FUNCTION_CEIL:
    case FUNCTION_ROUND:
    case FUNCTION_SIGN:
        vector_step(i, r, d, a[0], n);
        return;
    case FUNCTION_POW:
        vector_pow(r, d, a, n);
        return;
    case FUNCTION_MAXIMUM:
        pick(i, r, d, a[0], a[1], 1, n);
        return;
    case FUNCTION_MINIMUM:
        pick(i, r, d, a[0], a[1], -1, n);
        return;
    case FUNCTION_CLAMP:
        vector_clamp(i, r, d, a, n);
        return;
    default:
        vector_unary(i->function, r, d, a[0], n);
    }
    if (i->function == FUNCTION_SIGMOID)
        bend(r, d, a[0], exp_sigmoid, n);
    else if (i->function == FUNCTION_TANH)
        bend(r, d, a[0], exp_tangent, n);
    else if (i->function == FUNCTION_ERF)
        bend(r, d, a[0], erf, n);
    if (i->function == FUNCTION_LOG || i->function == FUNCTION_SQRT ||
        i->function == FUNCTION_RSQRT)
        close_domain(r, d, a[0], 0, n);
    if (i->function == FUNCTION_LOG1P)
        close_domain(r, d, a[0], -1, n);
}

void vector_node(const struct instr *i, const struct rules *r, struct reg *d,
                 const struct reg *const *a, size_t n) {
    switch (i->kind) {
    case EXPR_NEG:
        for (size_t l = 0; l < n; l++)
            d->v[l] = -a[0]->v[l];
        copy_error(i, d, a[0], n);
        return;
    case EXPR_NOT:
        for (size_t l = 0; l < n; l++)
            d->v[l] = a[0]->v[l] == 0;
        copy_error(i, d, a[0], n);
        return;
    case EXPR_ADD:
        vector_add(i, r, d, a, 1, n);
        return;
    case EXPR_SUB:
        vector_add(i, r, d, a, -1, n);
        return;
    case EXPR_MUL:
        vector_mul(i, r, d, a, n);
        return;
    case EXPR_DIV:
        vector_div(r, d, a, n);
        return;
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        vector_floordiv(i, d, a, n);
        return;
    case EXPR_AND:
    case EXPR_OR:
        vector_logic(i, d, a, n);
        return;
    case EXPR_CALL:
        vector_call(i, r, d, a, n);
        return;
    default:
        vector_compare(i, r, d, a, i->truths, n);
    }
}

/* Integers up to 2^24 are exact in fp32. */
void vector_to_real(const struct instr *i, const struct rules *r, struct reg *d,
                    const struct reg *a, size_t n) {
    for (size_t l = 0; l < n; l++)
        d->v[l] = a->v[l];
    for (size_t l = 0; l < n && !i->exact; l++)
        d->e[l] = a->e[l] + (fabs(d->v[l]) > 0x1p24 ? r->unit2 * d->v[l] * d->v[l] : 0);
}

/* In proportion it is part of the sum (struct fold); near zero the format is coarser. */
void vector_round(const struct rules *r, struct reg *d, const struct reg *a, size_t n) {
    for (size_t l = 0; l < n; l++) {
        d->v[l] = a->v[l];
        d->e[l] = a->e[l] + (a->v[l] == 0 || !isfinite(a->v[l]) ? 0 : r->format2);
    }
}

/* What lies between two sides that may both be taken. */
static double gap(double x, double y) {
    if (x == y || (isnan(x) && isnan(y)))
        return 0;
    return isfinite(x) && isfinite(y) ? (x - y) * (x - y) : INFINITY;
}

void vector_select(const struct instr *i, struct reg *d, const struct reg *const *a, size_t n) {
    for (size_t l = 0; l < n; l++) {
        const struct reg *taken = a[0]->v[l] != 0 ? a[1] : a[2];
        d->v[l] = taken->v[l];
        if (i->exact)
            continue;
        d->e[l] = taken->e[l];
        if (a[0]->e[l] > 0)
            d->e[l] = fmax(a[1]->e[l], a[2]->e[l]) + gap(a[1]->v[l], a[2]->v[l]);
    }
}

bool vector_is_pole(const struct instr *i, const struct reg *const *a, size_t lane) {
    if (i->op != OP_NODE)
        return false;
    if (i->kind == EXPR_DIV)
        return a[1]->v[lane] == 0;
    if (i->kind != EXPR_CALL)
        return false;
    if (i->function == FUNCTION_LOG1P)
        return a[0]->v[lane] == -1;
    return (i->function == FUNCTION_LOG || i->function == FUNCTION_RSQRT ||
            i->function == FUNCTION_POW) &&
           a[0]->v[lane] == 0;
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
