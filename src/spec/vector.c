/* Arithmetic of value and error, a block at a time.
 *
 * For each operation: the value in fp64; the variance of its operands through the derivative; and
 * the roundings that an honest fp32 evaluation adds, in units u = 2^-24 (docs/TASKS.md has the
 * table). Variances are squares of absolute errors, so quadrature is plain addition. What comes out
 * not finite here is settled by the caller. */
#include "spec/program.h"

#include <math.h>

#define U2     0x1p-48  /* u squared */
#define FLOOR2 0x1p-300 /* half the smallest subnormal of fp32, squared */

/* An uncertain operand on the edge of a domain, or of a decision: within the factor that one
 * element may be off. */
static bool within(double distance, double variance, double worst) {
    return variance > 0 && distance * distance <= worst * worst * variance;
}

static void vector_add(const struct instr *i, struct reg *d, const struct reg *a, double sign) {
    double unit = i->e->value_kind == VALUE_INT ? 0 : U2;
    for (int l = 0; l < LANES; l++) {
        double v = a[0].v[l] + sign * a[1].v[l];
        d->v[l] = v;
        d->e[l] = a[0].e[l] + a[1].e[l] + unit * v * v;
    }
}

static void vector_mul(const struct instr *i, struct reg *d, const struct reg *a) {
    bool integer = i->e->value_kind == VALUE_INT;
    double unit = integer ? 0 : U2, least = integer ? 0 : FLOOR2;
    for (int l = 0; l < LANES; l++) {
        double x = a[0].v[l], y = a[1].v[l], v = x * y;
        double exact = x == 0 || y == 0 ? 0 : least;
        d->v[l] = v;
        d->e[l] = x * x * a[1].e[l] + y * y * a[0].e[l] + unit * v * v + exact;
    }
}

static void vector_div(const struct instr *i, struct reg *d, const struct reg *a) {
    for (int l = 0; l < LANES; l++) {
        double x = a[0].v[l], y = a[1].v[l], v = x / y;
        double least = x == 0 ? 0 : FLOOR2;
        double through = a[0].e[l] + v * v * a[1].e[l];
        d->v[l] = v;
        d->e[l] = through == 0 ? U2 * v * v + least : through / (y * y) + U2 * v * v + least;
        if (within(y, a[1].e[l], i->limits.worst))
            d->e[l] = INFINITY;
    }
}

/* Integers as doubles: exact up to 2^53, and beyond that the caller gives up. */
static void vector_floordiv(const struct instr *i, struct reg *d, const struct reg *a, size_t n) {
    for (size_t l = 0; l < n; l++) {
        double x = a[0].v[l], y = a[1].v[l], r = fmod(x, y);
        if (r != 0 && (r < 0) != (y < 0))
            r += y;
        d->v[l] = i->e->kind == EXPR_MOD ? r : (x - r) / y;
        if (y == 0)
            d->v[l] = NAN;
        d->e[l] = a[0].e[l] + a[1].e[l] > 0 ? INFINITY : 0;
    }
}

static bool compare(enum expr_kind kind, double x, double y) {
    switch (kind) {
    case EXPR_EQ:
        return x == y;
    case EXPR_NE:
        return x != y;
    case EXPR_LT:
        return x < y;
    case EXPR_LE:
        return x <= y;
    case EXPR_GT:
        return x > y;
    default:
        return x >= y;
    }
}

static void vector_compare(const struct instr *i, struct reg *d, const struct reg *a, size_t n) {
    bool truths = i->e->args[0]->value_kind == VALUE_BOOL;
    for (size_t l = 0; l < n; l++) {
        double x = a[0].v[l], y = a[1].v[l], e = a[0].e[l] + a[1].e[l];
        bool open = isinf(e) || (truths ? e > 0 : within(x - y, e, i->limits.worst));
        d->v[l] = compare(i->e->kind, x, y);
        d->e[l] = open;
    }
}

/* Certain as soon as one certain side decides. */
static void vector_logic(const struct instr *i, struct reg *d, const struct reg *a, size_t n) {
    double decides = i->e->kind == EXPR_OR;
    for (size_t l = 0; l < n; l++) {
        bool x = a[0].v[l] != 0, y = a[1].v[l] != 0;
        bool decided =
            (a[0].v[l] == decides && a[0].e[l] == 0) || (a[1].v[l] == decides && a[1].e[l] == 0);
        d->v[l] = i->e->kind == EXPR_OR ? x || y : x && y;
        d->e[l] = !decided && a[0].e[l] + a[1].e[l] > 0;
    }
}

static void vector_sign(const struct instr *i, struct reg *d, const struct reg *a) {
    bool negate = i->e->kind == EXPR_NEG;
    for (int l = 0; l < LANES; l++) {
        d->v[l] = negate ? -a->v[l] : fabs(a->v[l]);
        d->e[l] = a->e[l];
    }
}

static double sigmoid(double x) {
    double t = exp(-fabs(x));
    return x >= 0 ? 1 / (1 + t) : t / (1 + t);
}

/* A function of one argument x with value v and derivative s: its result is off by `of_result`
 * units of itself, by `of_argument` units of the argument, by `absolute` units of one, and by
 * `least` near the end of the range. */
#define UNARY(value, slope, of_result, of_argument, absolute, least)                               \
    for (size_t l = 0; l < n; l++) {                                                               \
        double x = a->v[l], v = (value), s = (slope);                                              \
        double ours = (of_result) * (of_result)*v * v + (absolute) * (absolute);                   \
        if ((of_argument) != 0)                                                                    \
            ours += (of_argument) * (of_argument)*x * x * s * s;                                   \
        d->v[l] = v;                                                                               \
        d->e[l] = (a->e[l] > 0 ? s * s * a->e[l] : 0) + U2 * ours + (least) * (least);             \
    }                                                                                              \
    return

static void vector_unary(enum function f, struct reg *d, const struct reg *a, size_t n) {
    switch (f) {
    case FUNCTION_EXP:
        UNARY(exp(x), v, 2.0, 1.0, 0.0, 0x1p-148);
    case FUNCTION_LOG:
        UNARY(log(x), 1 / x, 2.0, 1.0, 0.0, 0.0);
    case FUNCTION_SQRT:
        UNARY(sqrt(x), 0.5 / v, 1.0, 0.0, 0.0, 0.0);
    case FUNCTION_RSQRT:
        UNARY(1 / sqrt(x), -0.5 * v / x, 2.0, 0.0, 0.0, 0.0);
    case FUNCTION_TANH:
        UNARY(tanh(x), 1 - v * v, 2.0, 1.0, 1.0, 0x1p-149);
    case FUNCTION_ERF:
        UNARY(erf(x), 1.1283791670955126 * exp(-x * x), 2.0, 1.0, 0.0, 0x1p-149);
    case FUNCTION_SIGMOID:
        UNARY(sigmoid(x), v * (1 - v), 3.0, 1.0, 0.0, 0x1p-130);
    case FUNCTION_SIN:
        UNARY(sin(x), cos(x), 2.0, 0.0, 0.5, 0x1p-149);
    case FUNCTION_COS:
        UNARY(cos(x), sin(x), 2.0, 0.0, 0.5, 0x1p-149);
    default:
        BUG_IF(true);
    }
}

/* Where an uncertain argument may lie on the other side of the domain's edge, nothing is known. */
static void close_domain(const struct instr *i, struct reg *d, const struct reg *a, size_t n) {
    for (size_t l = 0; l < n; l++)
        if (within(a->v[l], a->e[l], i->limits.worst))
            d->e[l] = INFINITY;
}

/* A step of one, where the argument may lie on either side of a whole number. */
static void vector_floor(const struct instr *i, struct reg *d, const struct reg *a, size_t n) {
    for (size_t l = 0; l < n; l++) {
        double x = a->v[l], e = a->e[l];
        d->v[l] = floor(x);
        d->e[l] = within(x - rint(x), e, i->limits.worst) ? 1 + e : 0;
    }
}

static void vector_pow(const struct instr *i, struct reg *d, const struct reg *a, size_t n) {
    for (size_t l = 0; l < n; l++) {
        double x = a[0].v[l], y = a[1].v[l], v = pow(x, y);
        double logarithm = x == 0 ? 0 : log(fabs(x));
        double by_x = a[0].e[l] > 0 ? y * v / x : 0, by_y = a[1].e[l] > 0 ? v * logarithm : 0;
        double scaled = y * logarithm * v;
        bool edge = y != floor(y) || y < 1;
        d->v[l] = v;
        d->e[l] = by_x * by_x * a[0].e[l] + by_y * by_y * a[1].e[l] +
                  U2 * (16 * v * v + scaled * scaled) + (v == 0 && x == 0 ? 0 : FLOOR2);
        if (x == 0 && !edge && isfinite(y))
            d->e[l] = a[0].e[l];
        if (edge && within(x, a[0].e[l], i->limits.worst))
            d->e[l] = INFINITY;
    }
}

/* The larger (want = 1) or the smaller (-1) of two; NaN wins, as in PyTorch. Where either may be
 * the one, the less certain counts. */
static void pick(const struct instr *i, struct reg *d, const struct reg *x, const struct reg *y,
                 double want, size_t n) {
    for (size_t l = 0; l < n; l++) {
        double a = x->v[l], b = y->v[l], ea = x->e[l], eb = y->e[l];
        bool first = isnan(a) || (!isnan(b) && want * a >= want * b);
        double e = first ? ea : eb, other = first ? eb : ea;
        if (other > e && (isinf(other) || within(a - b, ea + eb, i->limits.worst)))
            e = other;
        d->v[l] = first ? a : b;
        d->e[l] = e;
    }
}

static void vector_call(const struct instr *i, struct reg *d, const struct reg *a, size_t n) {
    struct reg t;
    switch (i->e->function) {
    case FUNCTION_ABS:
        vector_sign(i, d, a);
        return;
    case FUNCTION_FLOOR:
        vector_floor(i, d, a, n);
        return;
    case FUNCTION_POW:
        vector_pow(i, d, a, n);
        return;
    case FUNCTION_MAXIMUM:
        pick(i, d, &a[0], &a[1], 1, n);
        return;
    case FUNCTION_MINIMUM:
        pick(i, d, &a[0], &a[1], -1, n);
        return;
    case FUNCTION_CLAMP:
        pick(i, &t, &a[0], &a[1], 1, n);
        pick(i, d, &t, &a[2], -1, n);
        return;
    case FUNCTION_LOG:
    case FUNCTION_SQRT:
    case FUNCTION_RSQRT:
        vector_unary(i->e->function, d, a, n);
        close_domain(i, d, a, n);
        return;
    default:
        vector_unary(i->e->function, d, a, n);
    }
}

void vector_node(const struct instr *i, struct reg *d, const struct reg *a, size_t n) {
    switch (i->e->kind) {
    case EXPR_NEG:
        vector_sign(i, d, a);
        return;
    case EXPR_NOT:
        for (size_t l = 0; l < n; l++) {
            d->v[l] = a->v[l] == 0;
            d->e[l] = a->e[l];
        }
        return;
    case EXPR_ADD:
        vector_add(i, d, a, 1);
        return;
    case EXPR_SUB:
        vector_add(i, d, a, -1);
        return;
    case EXPR_MUL:
        vector_mul(i, d, a);
        return;
    case EXPR_DIV:
        vector_div(i, d, a);
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
        vector_call(i, d, a, n);
        return;
    default:
        vector_compare(i, d, a, n);
    }
}

/* Integers up to 2^24 are exact in fp32. */
void vector_to_real(struct reg *d, const struct reg *a, size_t n) {
    for (size_t l = 0; l < n; l++) {
        double v = a->v[l];
        d->v[l] = v;
        d->e[l] = a->e[l] + (fabs(v) > 0x1p24 ? U2 * v * v : 0);
    }
}

/* What lies between two sides that may both be taken. */
static double gap(double x, double y) {
    if (x == y || (isnan(x) && isnan(y)))
        return 0;
    return isfinite(x) && isfinite(y) ? (x - y) * (x - y) : INFINITY;
}

void vector_select(struct reg *d, const struct reg *a, size_t n) {
    for (size_t l = 0; l < n; l++) {
        const struct reg *taken = a->v[l] != 0 ? &a[1] : &a[2];
        d->v[l] = taken->v[l];
        d->e[l] = taken->e[l];
        if (a->e[l] > 0)
            d->e[l] = fmax(a[1].e[l], a[2].e[l]) + gap(a[1].v[l], a[2].v[l]);
    }
}

bool vector_is_pole(const struct instr *i, const struct reg *a, size_t lane) {
    if (i->op != OP_NODE)
        return false;
    if (i->e->kind == EXPR_DIV)
        return a[1].v[lane] == 0;
    bool at_zero = i->e->kind == EXPR_CALL &&
                   (i->e->function == FUNCTION_LOG || i->e->function == FUNCTION_RSQRT ||
                    i->e->function == FUNCTION_POW);
    return at_zero && a[0].v[lane] == 0;
}
