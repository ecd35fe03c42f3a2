/* A value in fp64 and the variance of the error that an honest evaluation in fp32 has made so far.
 * Read by two compilers (spec/shared.h): machine.c applies it to blocks of lanes, the
 * oracle (assets/oracle/value.cuh) to one element in each thread.
 *
 * For each operation: the value; the variance of its operands through the derivative; and the
 * roundings that an honest evaluation adds, in units u = 2^-24 (docs/TASKS.md has the table).
 * Variances are squares of absolute errors, so quadrature is plain addition.
 *
 * The variance is infinite where the mathematics leaves the value undefined; of an infinite value
 * it is 0, or 1 where an honest kernel may as well arrive at NaN (the infinity is `open`). Truth
 * values are 0 or 1, with a variance of 1 where they may go either way.
 *
 * An operation makes value and variance by arithmetic alone; what comes out infinite, NaN or beyond
 * fp32 is put right by `settle`, which looks at the operands again. */
#ifndef SPEC_VALUE_H
#define SPEC_VALUE_H

#include "spec/convert_value.h"

#define DOUBLE_MOST 0x1.fffffffffffffp1023
#define FLOAT_MOST  0x1.fffffep127

struct value {
    double v, e;
#ifdef __CUDACC__ /* where a double is an exact value */
    __device__ value() {}
    __device__ value(double exact) : v(exact), e(0) {}
    __device__ value(double v, double e) : v(v), e(e) {}
#endif
};

SHARED struct value value_of(double v, double e) {
    struct value x;
    x.v = v;
    x.e = e;
    return x;
}

/* The factors of the two tests (docs/TASKS.md): an element may be off by `worst` estimates, a
 * tensor by `rms` in the root mean square. */
struct limits {
    double worst, rms;
};

/* What roundings cost in an accuracy class, as variances. The limits of the tensor-core classes are
 * a quarter of fp32's, so that fp32 arithmetic, which they also contain, counts four times there.
 */
struct rules {
    struct limits limits;
    double unit2;  /* one fp32 rounding of 1 */
    double least2; /* half the smallest subnormal number of fp32 */
    /* Of products that are summed: rounding one operand to the class's format, and the accumulator
     * truncated, in units of the running sum, after each term on average. Both 0 in fp32. */
    double operand2, truncation;
    double format2; /* … of an operand near zero: half the format's smallest number */
};

#ifndef __CUDACC__
struct limits accuracy_limits(enum accuracy a);
struct rules rules_of(enum accuracy a);
#endif

/* Integers are not rounded. */
SHARED struct rules integer_rules(struct rules r) {
    r.unit2 = r.least2 = 0;
    return r;
}

/* An uncertain operand on the edge of a domain, or of a decision: within the factor that one
 * element may be off. */
SHARED bool value_within(double distance, double variance, double worst) {
    return variance > 0 && distance * distance <= worst * worst * variance;
}

/* An infinity that a kernel may have as NaN. */
SHARED bool is_open(struct value x) {
    return isinf(x.v) && x.e > 0;
}

/* ---- what comes out of the ordinary ---- */

/* What settling needs to know of an operation. */
enum {
    SETTLE_INTEGER = 1,  /* exact as far as doubles go */
    SETTLE_TRUTH = 2,    /* a truth value */
    SETTLE_ROOT = 4,     /* its result is stored: fp64 does not end where fp32 does */
    SETTLE_REGROUPS = 8, /* a product with a difference, which a kernel may multiply out */
    SETTLE_FACTORS = 16, /* a product or a quotient */
    NO_POLE = 0,
    POLE_DIVISOR = 32, /* infinite by itself: at y = 0, x = 0 or x = -1 */
    POLE_ZERO = 64,
    POLE_MINUS_ONE = 128,
};

/* The largest magnitude that counts: beyond it fp32, or an exact integer in a double, ends. */
SHARED double settle_most(int how) {
    return how & SETTLE_INTEGER ? 0x1p53 : how & SETTLE_ROOT ? DOUBLE_MOST : FLOAT_MOST;
}

SHARED bool is_ordinary(struct value d, double most) {
    return fabs(d.v) <= most && d.e <= DOUBLE_MOST;
}

/* The result is infinite because the function is, there; not because it overflowed. */
SHARED bool at_pole(int how, double x, double y) {
    return (how & POLE_DIVISOR && y == 0) || (how & POLE_ZERO && x == 0) ||
           (how & POLE_MINUS_ONE && x == -1);
}

/* The variance of a result d that is not ordinary, of up to three operands; the others are 0. */
SHARED_APART double settled_variance(double unit2, double worst, int how, struct value d,
                                     struct value x, struct value y, struct value z) {
    bool undefined = isinf(x.e) || isinf(y.e) || isinf(z.e);
    bool nan =
        (isnan(x.v) && !isinf(x.e)) || (isnan(y.v) && !isinf(y.e)) || (isnan(z.v) && !isinf(z.e));
    bool infinite = isinf(x.v) || isinf(y.v) || isinf(z.v);
    bool open = how & SETTLE_REGROUPS || is_open(x) || is_open(y) || is_open(z);
    /* An infinity times, or over, what may lie on either side of zero. */
    bool either = how & SETTLE_FACTORS && isinf(d.v) &&
                  (value_within(x.v, x.e, worst) || value_within(y.v, y.e, worst));
    if (isnan(d.v))
        return nan ? 0 : INFINITY;
    if (undefined || either)
        return INFINITY;
    if (isinf(d.v) && infinite)
        return open ? 1 : 0;
    if (isinf(d.v))
        return how & SETTLE_ROOT || at_pole(how, x.v, y.v) ? 0 : INFINITY;
    if (infinite && open)
        return INFINITY;
    if (infinite || nan)
        return d.v * d.v * 4 * unit2;
    return INFINITY;
}

/* An infinity that a kernel may have as NaN makes NaN of whatever is computed from it, also where
 * the mathematics comes back to a number: x/inf, exp(-inf), a comparison. */
SHARED struct value settle_of(struct rules r, int how, struct value d, struct value x,
                              struct value y, struct value z) {
    if (!is_ordinary(d, settle_most(how)))
        d.e = settled_variance(r.unit2, r.limits.worst, how, d, x, y, z);
    if (isfinite(d.v) && (is_open(x) || is_open(y) || is_open(z)))
        d.e = how & SETTLE_TRUTH ? 1 : INFINITY;
    return d;
}

/* ---- leaves and conversions ---- */

SHARED struct value value_literal(struct rules r, double v) {
    return value_of(v, v * v * (r.unit2 / 3));
}

/* Of an fp64 input, which is rounded to fp32. */
SHARED double input_variance(struct rules r, double v) {
    return !isfinite(v) || (double)(float)v == v ? 0 : v * v * r.unit2;
}

/* Integers up to 2^24 are exact in fp32. */
SHARED struct value value_to_real(struct rules r, struct value x) {
    return value_of(x.v, x.e + (fabs(x.v) > 0x1p24 ? r.unit2 * x.v * x.v : 0));
}

/* A factor of a sum, to the format of the class. In proportion to it that is part of the sum
 * (chain.h); near zero the format is coarser. */
SHARED struct value value_factor(struct rules r, struct value x) {
    return value_of(x.v, x.e + (x.v == 0 || !isfinite(x.v) ? 0 : r.format2));
}

/* ---- operators ---- */

SHARED struct value value_neg(struct rules r, struct value x) {
    (void)r;
    return value_of(-x.v, x.e);
}

SHARED struct value value_add(struct rules r, struct value x, struct value y) {
    double v = x.v + y.v;
    return value_of(v, x.e + y.e + r.unit2 * v * v);
}

SHARED struct value value_sub(struct rules r, struct value x, struct value y) {
    double v = x.v - y.v;
    return value_of(v, x.e + y.e + r.unit2 * v * v);
}

/* Both factors may be off by their worst at once, which counts where both are hardly known. */
SHARED struct value value_mul(struct rules r, struct value x, struct value y) {
    double v = x.v * y.v, both = r.limits.worst * r.limits.worst * x.e * y.e;
    return value_of(v, x.v * x.v * y.e + y.v * y.v * x.e + both + r.unit2 * v * v +
                           (v == 0 ? 0 : r.least2));
}

SHARED struct value value_div(struct rules r, struct value x, struct value y) {
    double v = x.v / y.v, own = r.unit2 * v * v + (x.v == 0 ? 0 : r.least2);
    double through = x.e + v * v * y.e, e = through == 0 ? own : through / (y.v * y.v) + own;
    return value_of(v, value_within(y.v, y.e, r.limits.worst) ? INFINITY : e);
}

/* Rounded down, and the remainder with the sign of the divisor. Integers as doubles: exact up to
 * 2^53, and beyond that settling gives up. */
SHARED double floor_remainder(double x, double y) {
    double rest = fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

SHARED double floor_quotient(double x, double y) {
    return y == 0 ? NAN : (x - floor_remainder(x, y)) / y;
}

SHARED struct value value_floordiv(struct rules r, struct value x, struct value y) {
    (void)r;
    return value_of(floor_quotient(x.v, y.v), x.e + y.e > 0 ? INFINITY : 0);
}

SHARED struct value value_mod(struct rules r, struct value x, struct value y) {
    (void)r;
    return value_of(floor_remainder(x.v, y.v), x.e + y.e > 0 ? INFINITY : 0);
}

/* ---- truth values ---- */

/* A comparison of x and y, which may go the other way; truths: of truth values. */
SHARED struct value value_compared(struct rules r, bool holds, bool truths, struct value x,
                                   struct value y) {
    double e = x.e + y.e;
    bool doubtful = isinf(e) || (truths ? e > 0 : value_within(x.v - y.v, e, r.limits.worst));
    return value_of(holds ? 1 : 0, doubtful ? 1 : 0);
}

SHARED struct value value_not(struct value x) {
    return value_of(x.v == 0 ? 1 : 0, x.e);
}

/* Certain as soon as one certain side decides. */
SHARED struct value value_decided(double decides, bool holds, struct value x, struct value y) {
    bool decided = (x.v == decides && x.e == 0) || (y.v == decides && y.e == 0);
    return value_of(holds ? 1 : 0, !decided && x.e + y.e > 0 ? 1 : 0);
}

SHARED struct value value_and(struct value x, struct value y) {
    return value_decided(0, (x.v != 0) & (y.v != 0), x, y);
}

SHARED struct value value_or(struct value x, struct value y) {
    return value_decided(1, (x.v != 0) | (y.v != 0), x, y);
}

/* What lies between two sides that may both be taken. */
SHARED double gap2(double x, double y) {
    if (x == y || (isnan(x) && isnan(y)))
        return 0;
    return isfinite(x) && isfinite(y) ? (x - y) * (x - y) : INFINITY;
}

SHARED struct value value_if(struct value condition, struct value x, struct value y) {
    struct value d = condition.v != 0 ? x : y;
    if (condition.e > 0)
        d.e = fmax(x.e, y.e) + gap2(x.v, y.v);
    return d;
}

/* ---- functions: what function.def is written in ---- */

#ifndef EXP
#define EXP  exp
#define TANH tanh
#endif

#define RULE_SMOOTH(slope, of_result, of_argument, absolute, least, edge)                          \
    smooth_variance(r, a, v, slope, of_result, of_argument, absolute, least, edge)
#define RULE_POWER(of_result, least) power_variance(r, a, b, v, of_result, least)
#define RULE_EXACT(variance)         (variance)

SHARED double smooth_variance(struct rules r, struct value a, double v, double slope,
                              double of_result, double of_argument, double absolute, double least,
                              double edge) {
    double ours = of_result * of_result * v * v + absolute * absolute;
    double through = a.e > 0 ? slope * slope * a.e : 0;
    if (of_argument != 0)
        ours += of_argument * of_argument * a.v * a.v * slope * slope;
    double e = through + r.unit2 * (ours + least * least * 0x1p48);
    return edge == edge && value_within(a.v - edge, a.e, r.limits.worst) ? INFINITY : e;
}

SHARED double power_variance(struct rules r, struct value a, struct value b, double v,
                             double of_result, double least) {
    double x = a.v, y = b.v, logarithm = x == 0 ? 0 : log(fabs(x));
    double by_x = a.e > 0 ? y * v / x : 0, by_y = b.e > 0 ? v * logarithm : 0;
    double scaled = y * logarithm * v, least2 = r.unit2 * (least * least * 0x1p48);
    bool edge = y != floor(y) || y < 1;
    if (edge && value_within(x, a.e, r.limits.worst))
        return INFINITY;
    if (x == 0 && !edge && isfinite(y))
        return a.e;
    return by_x * by_x * a.e + by_y * by_y * b.e +
           r.unit2 * (of_result * of_result * v * v + scaled * scaled) +
           (v == 0 && x == 0 ? 0 : least2);
}

/* Of a function that is steepest at 0 and flat far from it: where its argument is hardly known, the
 * local derivative underestimates the error when x may be nearer 0. The change of the function over
 * that distance counts; a tenth more of it, since what a whole step is multiplied with is not exact
 * either. */
SHARED double flat_from(struct rules r) {
    double known = 0.1 / r.limits.worst;
    return known * known;
}

SHARED bool is_hardly_known(struct rules r, struct value a) {
    return a.e > flat_from(r) && !isinf(a.e);
}

SHARED double nearer_zero(struct rules r, struct value a) {
    return a.v - copysign(r.limits.worst * sqrt(a.e), a.v);
}

/* `there`: the function nearer 0; e: the variance by its derivative. */
SHARED double change_variance(struct rules r, double v, double there, double e) {
    double change = 1.1 * (there - v) / r.limits.worst;
    return fmax(e, change * change);
}

/* A step of size 1, at whole numbers plus `offset`, where the argument may lie on either side. */
SHARED double step_variance(struct rules r, struct value a, double offset) {
    double distance = a.v + offset - rint(a.v + offset);
    double e = value_within(distance, a.e, r.limits.worst) ? 1 + a.e : 0;
    return isinf(a.e) ? INFINITY : e;
}

SHARED double sign_variance(struct rules r, struct value a) {
    double e = value_within(a.v, a.e, r.limits.worst) ? 4 : 0;
    return isinf(a.e) ? INFINITY : e;
}

SHARED double sign_of(double x) {
    return (double)((x > 0) - (x < 0));
}

/* t = e^-|x| */
SHARED double sigmoid_of(double x, double t) {
    return (x >= 0 ? 1 : t) / (1 + t);
}

/* NaN wins, as in PyTorch; the first of equals. */
SHARED double larger_of(double x, double y) {
    return ((x != x) | (x >= y)) ? x : y;
}

SHARED double smaller_of(double x, double y) {
    return ((x != x) | (x <= y)) ? x : y;
}

/* Of integers whose bits count: nothing is known where one of them is uncertain. */
SHARED double certain_variance(struct value a, struct value b) {
    return a.e + b.e > 0 ? INFINITY : 0;
}

enum { BITS_AND, BITS_OR, BITS_XOR };

/* An integer in a double as two's complement, and whether it is one. */
SHARED bool bits_in(double x) {
    return fabs(x) <= 0x1p53;
}

SHARED double bits_of(int op, double x, double y) {
    if (!bits_in(x) || !bits_in(y))
        return NAN;
    int64_t a = (int64_t)x, b = (int64_t)y;
    return (double)(op == BITS_AND ? a & b : op == BITS_OR ? a | b : a ^ b);
}

/* By 0 to 62 places; others leave it undefined. */
SHARED bool shift_in(double x, double by) {
    return bits_in(x) && by >= 0 && by <= 62;
}

SHARED double shifted_left(double x, double by) {
    return shift_in(x, by) ? x * (double)((int64_t)1 << (int)by) : NAN;
}

SHARED double shifted_right(double x, double by) {
    return shift_in(x, by) ? floor(x / (double)((int64_t)1 << (int)by)) : NAN;
}

/* The first word of the block `index` of Philox4x32-10 with the key `seed`, both as 64 bits with
 * the low half first: its upper 24 bits as a fraction. */
SHARED double philox_of(double seed, double index) {
    if (!bits_in(seed) || !bits_in(index))
        return NAN;
    uint64_t key = (uint64_t)(int64_t)seed, at = (uint64_t)(int64_t)index;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)at, c1 = (uint32_t)(at >> 32), c2 = 0, c3 = 0;
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (double)(c0 >> 8) * 0x1p-24;
}

/* One is 0, the other -0: either is the larger one, so that what is divided by it is uncertain. */
SHARED bool are_opposite_zeros(double x, double y) {
    return (x == 0) & (y == 0) & (copysign(1.0, x) != copysign(1.0, y));
}

/* One of two. Where either may be the one, the less certain counts. */
SHARED struct value value_pick(struct rules r, bool first, struct value x, struct value y) {
    double e = first ? x.e : y.e, other = first ? y.e : x.e;
    bool close = isinf(other) || value_within(x.v - y.v, x.e + y.e, r.limits.worst);
    e = other > e && close ? other : e;
    return value_of(first ? x.v : y.v, are_opposite_zeros(x.v, y.v) && e < r.least2 ? r.least2 : e);
}

SHARED struct value pick_larger(struct rules r, struct value x, struct value y) {
    return value_pick(r, (x.v != x.v) | (x.v >= y.v), x, y);
}

SHARED struct value pick_smaller(struct rules r, struct value x, struct value y) {
    return value_pick(r, (x.v != x.v) | (x.v <= y.v), x, y);
}

/* ---- what is stored ---- */

/* A stored integer is exact or, outside its type, undefined. */
SHARED double integer_estimate(struct value x, double lo, double hi) {
    if (isinf(x.e) || isnan(x.v))
        return INFINITY;
    return x.v >= lo && x.v <= hi ? sqrt(x.e) : INFINITY;
}

/* An estimate, of a value that storing may make infinite. Storing must not eat up the allowance of
 * the arithmetic, nor be multiplied by it: its share is set so that `rms` shares are half an ulp.
 */
SHARED double float_estimate(struct limits l, enum dtype t, struct value *x) {
    double edge = round_overflow(t), room = l.worst * sqrt(x->e);
    if (isinf(x->e) || isnan(x->v))
        return isinf(x->e) ? INFINITY : 0;
    if (isinf(x->v))
        return x->e > 0 ? 1 : 0; /* NaN will do */
    if (fabs(x->v) >= edge + room) {
        x->v = copysign(INFINITY, x->v);
        return 0;
    }
    if (fabs(x->v) > edge - room)
        return INFINITY;
    if (x->e == 0 && round_to(t, x->v) == x->v)
        return 0;
    double share = round_half_ulp(t, x->v) / l.rms;
    return sqrt(x->e + share * share);
}

/* A typed let rounds. Away from a rounding boundary every honest evaluation rounds to the same
 * number and its error is gone; near one it may be off by a whole step. */
SHARED struct value let_float(struct limits l, enum dtype t, struct value x) {
    if (isinf(x.e) || !isfinite(x.v))
        return x;
    double rounded = round_to(t, x.v), half = round_half_ulp(t, x.v);
    double room = l.worst * sqrt(x.e);
    if (isinf(rounded) || room == 0)
        return value_of(rounded, 0);
    bool near = fabs(x.v - rounded) + room >= half;
    return value_of(rounded, near ? x.e + 4 * half * half : 0);
}

/* NaN is no integer: whatever a kernel makes of one is as good as anything else. */
SHARED struct value let_integer(struct value x, double lo, double hi) {
    return value_of(x.v, x.v >= lo && x.v <= hi ? x.e : INFINITY);
}

#endif
