// A value and the variance of the error that an honest evaluation has made so far: the arithmetic
// of spec/vector.c and spec/machine.c, one lane at a time. UNIT2, LEAST2, FORMAT2, WORST and RMS are the
// rules of the task's accuracy class.
//
// The variance is infinite where the mathematics leaves the value undefined; of an infinite value
// it is 0, or 1 where an honest kernel may as well arrive at NaN. Truth values are 0 or 1, with a
// variance of 1 where they may go either way. What is exact is a plain double.

struct value {
    double v, e;
    __device__ value() {}
    __device__ value(double exact) : v(exact), e(0) {}
    __device__ value(double v, double e) : v(v), e(e) {}
};

#define DOUBLE_MOST 0x1.fffffffffffffp1023
#define FLOAT_MOST  0x1.fffffep127

// A read that would leave its tensor, which only occurs where the result is not used.
__device__ static inline value undefined() {
    return value(0, INFINITY);
}

// An uncertain operand on the edge of a domain, or of a decision.
__device__ static inline bool within(double distance, double variance) {
    return variance > 0 && distance * distance <= WORST * WORST * variance;
}

// ---- results that are out of the ordinary ----

// How an operation is to be settled.
enum {
    INTEGER = 1,       // exact as far as doubles go
    ROOT = 2,          // its result is stored: fp64 does not end where fp32 does
    REGROUPS = 4,      // a product with a difference, which a kernel may multiply out
    POLE_DIVISOR = 8,  // infinite at y = 0, or x = 0, or x = -1, by itself
    POLE_ZERO = 16,
    POLE_MINUS_ONE = 32,
};

__device__ static inline bool at_pole(int how, value x, value y) {
    return (how & POLE_DIVISOR && y.v == 0) || (how & POLE_ZERO && x.v == 0) ||
           (how & POLE_MINUS_ONE && x.v == -1);
}

__device__ __noinline__ static double settled(value d, int how, value x, value y, value z) {
    const bool undefined = isinf(x.e) || isinf(y.e) || isinf(z.e);
    const bool nan = (isnan(x.v) && !isinf(x.e)) || (isnan(y.v) && !isinf(y.e)) ||
                     (isnan(z.v) && !isinf(z.e));
    const bool infinite = isinf(x.v) || isinf(y.v) || isinf(z.v);
    const bool open = how & REGROUPS || (isinf(x.v) && x.e > 0) || (isinf(y.v) && y.e > 0) ||
                      (isinf(z.v) && z.e > 0);
    if (isnan(d.v))
        return nan ? 0 : INFINITY;
    if (undefined)
        return INFINITY;
    if (isinf(d.v) && infinite)
        return open ? 1 : 0;
    if (isinf(d.v))
        return how & ROOT || at_pole(how, x, y) ? 0 : INFINITY;
    if (infinite && open)
        return INFINITY;
    if (infinite || nan)
        return d.v * d.v * 4 * UNIT2;
    return INFINITY;
}

// An infinity that a kernel may have as NaN makes NaN of whatever is computed from it, also where the
// mathematics comes back to a number: x/inf, exp(-inf), a comparison.
__device__ static inline bool is_open(value x) {
    return isinf(x.v) && x.e > 0;
}

__device__ static inline value settle(value d, int how, value x, value y = 0.0, value z = 0.0) {
    const double most = how & INTEGER ? 0x1p53 : how & ROOT ? DOUBLE_MOST : FLOAT_MOST;
    if (!(fabs(d.v) <= most) || !(d.e <= DOUBLE_MOST))
        d.e = settled(d, how, x, y, z);
    if (isfinite(d.v) && (is_open(x) || is_open(y) || is_open(z)))
        d.e = INFINITY;
    return d;
}

// ---- operators ----

__device__ static inline value literal(double v) {
    return value(v, v * v * (UNIT2 / 3));
}

// Of an fp64 input: it is rounded to fp32.
__device__ static inline value input64(double v) {
    return value(v, !isfinite(v) || (double)(float)v == v ? 0 : v * v * UNIT2);
}

// Integers up to 2^24 are exact in fp32.
__device__ static inline value to_real(value x) {
    return value(x.v, x.e + (fabs(x.v) > 0x1p24 ? UNIT2 * x.v * x.v : 0));
}

// A factor of a sum, to the format of the class. In proportion that is part of the sum; near zero the
// format is coarser.
__device__ static inline value rounded(value x) {
    return value(x.v, x.e + (x.v == 0 || !isfinite(x.v) ? 0 : FORMAT2));
}

__device__ static inline value negate(value x, int how = 0) {
    return settle(value(-x.v, x.e), how, x);
}

__device__ static inline value add(value x, value y, int how = 0) {
    const double v = x.v + y.v;
    return settle(value(v, x.e + y.e + (how & INTEGER ? 0 : UNIT2) * v * v), how, x, y);
}

__device__ static inline value sub(value x, value y, int how = 0) {
    const double v = x.v - y.v;
    return settle(value(v, x.e + y.e + (how & INTEGER ? 0 : UNIT2) * v * v), how, x, y);
}

// An infinity times, or over, what may lie on either side of zero, is not judged.
__device__ static inline value sided(value d, value x, value y) {
    if (isinf(d.v) && (within(x.v, x.e) || within(y.v, y.e)))
        d.e = INFINITY;
    return d;
}

__device__ static inline value mul(value x, value y, int how = 0) {
    const double v = x.v * y.v, unit2 = how & INTEGER ? 0 : UNIT2;
    const double least2 = how & INTEGER || v == 0 ? 0 : LEAST2;
    // Both factors may be off by their worst at once, which counts where both are hardly known.
    const double both = WORST * WORST * x.e * y.e;
    const value d(v, x.v * x.v * y.e + y.v * y.v * x.e + both + unit2 * v * v + least2);
    return sided(settle(d, how, x, y), x, y);
}

__device__ static inline value divide(value x, value y, int how = 0) {
    const double v = x.v / y.v, own = UNIT2 * v * v + (x.v == 0 ? 0 : LEAST2);
    const double through = x.e + v * v * y.e;
    value d(v, through == 0 ? own : through / (y.v * y.v) + own);
    if (within(y.v, y.e))
        d.e = INFINITY;
    return sided(settle(d, how | POLE_DIVISOR, x, y), x, y);
}

// The remainder with the sign of the divisor. Integers as doubles: exact up to 2^53.
__device__ static inline double floor_remainder(double x, double y) {
    const double r = fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

__device__ static inline value floor_divide(value x, value y, int how = 0) {
    const double v = y.v == 0 ? NAN : (x.v - floor_remainder(x.v, y.v)) / y.v;
    return settle(value(v, x.e + y.e > 0 ? INFINITY : 0), how, x, y);
}

__device__ static inline value modulo(value x, value y, int how = 0) {
    const double v = y.v == 0 ? NAN : floor_remainder(x.v, y.v);
    return settle(value(v, x.e + y.e > 0 ? INFINITY : 0), how, x, y);
}

// ---- truth values ----

// May a comparison of x and y go the other way?
__device__ static inline double doubt(value x, value y) {
    const bool open = is_open(x) || is_open(y);
    return open || isinf(x.e + y.e) || within(x.v - y.v, x.e + y.e) ? 1 : 0;
}

__device__ static inline double doubt_truths(value x, value y) {
    return x.e + y.e > 0 ? 1 : 0;
}

__device__ static inline value logical_not(value x) {
    return value(x.v == 0 ? 1 : 0, x.e);
}

// Certain as soon as one certain side decides.
__device__ static inline value decided_by(double decides, value x, value y, bool v) {
    const bool decided = (x.v == decides && x.e == 0) || (y.v == decides && y.e == 0);
    return value(v ? 1 : 0, !decided && x.e + y.e > 0 ? 1 : 0);
}

__device__ static inline value logical_and(value x, value y) {
    return decided_by(0, x, y, x.v != 0 && y.v != 0);
}

__device__ static inline value logical_or(value x, value y) {
    return decided_by(1, x, y, x.v != 0 || y.v != 0);
}

// What lies between two sides that may both be taken.
__device__ static inline double gap(double x, double y) {
    if (x == y || (isnan(x) && isnan(y)))
        return 0;
    return isfinite(x) && isfinite(y) ? (x - y) * (x - y) : INFINITY;
}

__device__ static inline value choose(value condition, value x, value y) {
    value d = condition.v != 0 ? x : y;
    if (condition.e > 0)
        d.e = fmax(x.e, y.e) + gap(x.v, y.v);
    return d;
}

// ---- functions ----

// A function of x with value v and derivative `slope`: its result is off by `of_result` units of
// itself, by `of_argument` units of the argument, by `absolute` units of one, and by `least` near
// the end of the range.
__device__ static inline value call(value x, double v, double slope, int how, double of_result,
                                    double of_argument, double absolute, double least) {
    double ours = of_result * of_result * v * v + absolute * absolute;
    if (of_argument != 0)
        ours += of_argument * of_argument * x.v * x.v * slope * slope;
    const double through = x.e > 0 ? slope * slope * x.e : 0;
    return settle(value(v, through + UNIT2 * (ours + least * least * 0x1p48)), how, x);
}

// The same where an uncertain argument may lie on the other side of the domain's edge.
__device__ static inline value call_from(double edge, value x, double v, double slope, int how,
                                         double of_result, double of_argument, double absolute,
                                         double least) {
    if (within(x.v - edge, x.e))
        return settle(value(v, INFINITY), how, x);
    return call(x, v, slope, how, of_result, of_argument, absolute, least);
}

__device__ static inline value value_exp(value x, int how = 0) {
    const double v = exp(x.v);
    return call(x, v, v, how, 2, 1, 0, 0x1p-148);
}

__device__ static inline value value_log(value x, int how = 0) {
    return call_from(0, x, log(x.v), 1 / x.v, how | POLE_ZERO, 2, 1, 0, 0);
}

__device__ static inline value value_sqrt(value x, int how = 0) {
    const double v = sqrt(x.v);
    return call_from(0, x, v, 0.5 / v, how, 1, 0, 0, 0);
}

__device__ static inline value value_rsqrt(value x, int how = 0) {
    const double v = 1 / sqrt(x.v);
    return call_from(0, x, v, -0.5 * v / x.v, how | POLE_ZERO, 2, 0, 0, 0);
}

// A function that is steepest at 0 and flat far from it: where its argument is not known well, its
// slope there says nothing of what it is nearer to 0, and the change over that distance counts; a
// tenth more of it, since what a whole step is multiplied with is not exact either.
__device__ static inline double nearer(value x) {
    const double reach = WORST * sqrt(x.e);
    return reach > 0.1 && !isinf(reach) ? x.v - copysign(reach, x.v) : x.v;
}
__device__ static inline value bend(value d, double there) {
    const double change = 1.1 * (there - d.v) / WORST;
    d.e = fmax(d.e, change * change);
    return d;
}

__device__ static inline value value_tanh(value x, int how = 0) {
    const double v = tanh(x.v);
    return bend(call(x, v, 1 - v * v, how, 2, 1, 1, 0x1p-149), tanh(nearer(x)));
}

__device__ static inline value value_erf(value x, int how = 0) {
    const value d = call(x, erf(x.v), 1.1283791670955126 * exp(-x.v * x.v), how, 2, 1, 0, 0x1p-149);
    return bend(d, erf(nearer(x)));
}

__device__ static inline double sigmoid(double x) {
    const double t = exp(-fabs(x));
    return x >= 0 ? 1 / (1 + t) : t / (1 + t);
}

__device__ static inline value value_sigmoid(value x, int how = 0) {
    const double v = sigmoid(x.v);
    return bend(call(x, v, v * (1 - v), how, 3, 1, 0, 0x1p-130), sigmoid(nearer(x)));
}

__device__ static inline value value_sin(value x, int how = 0) {
    return call(x, sin(x.v), cos(x.v), how, 2, 0, 0.5, 0x1p-149);
}

__device__ static inline value value_cos(value x, int how = 0) {
    return call(x, cos(x.v), sin(x.v), how, 2, 0, 0.5, 0x1p-149);
}

__device__ static inline value value_expm1(value x, int how = 0) {
    const double v = expm1(x.v);
    return call(x, v, v + 1, how, 2, 1, 1, 0x1p-149);
}

__device__ static inline value value_log1p(value x, int how = 0) {
    return call_from(-1, x, log1p(x.v), 1 / (1 + x.v), how | POLE_MINUS_ONE, 2, 1, 1, 0x1p-149);
}

__device__ static inline value value_pow(value x, value y, int how = 0) {
    const double v = pow(x.v, y.v), logarithm = x.v == 0 ? 0 : log(fabs(x.v));
    const double by_x = x.e > 0 ? y.v * v / x.v : 0, by_y = y.e > 0 ? v * logarithm : 0;
    const double scaled = y.v * logarithm * v;
    const bool edge = y.v != floor(y.v) || y.v < 1;
    value d(v, by_x * by_x * x.e + by_y * by_y * y.e + UNIT2 * (16 * v * v + scaled * scaled) +
                   (v == 0 && x.v == 0 ? 0 : LEAST2));
    if (x.v == 0 && !edge && isfinite(y.v))
        d.e = x.e;
    if (edge && within(x.v, x.e))
        d.e = INFINITY;
    return settle(d, how | POLE_ZERO, x, y);
}

__device__ static inline value value_abs(value x, int how = 0) {
    return settle(value(fabs(x.v), x.e), how, x);
}

// A step where the argument may lie on either side of one: of size 1 at whole numbers + offset.
__device__ static inline value step(value x, double v, double offset, int how) {
    const double distance = x.v + offset - rint(x.v + offset);
    double e = within(distance, x.e) ? 1 + x.e : 0;
    if (isinf(x.e))
        e = INFINITY;
    return settle(value(v, e), how, x);
}

__device__ static inline value value_floor(value x, int how = 0) {
    return step(x, floor(x.v), 0, how);
}

__device__ static inline value value_ceil(value x, int how = 0) {
    return step(x, ceil(x.v), 0, how);
}

__device__ static inline value value_round(value x, int how = 0) {
    return step(x, rint(x.v), 0.5, how);
}

__device__ static inline double sign_of(double x) {
    return (double)((x > 0) - (x < 0));
}

__device__ static inline value value_sign(value x, int how = 0) {
    const double e = isinf(x.e) ? INFINITY : within(x.v, x.e) ? 4 : 0;
    return settle(value(sign_of(x.v), e), how, x);
}

// NaN wins, as in PyTorch. Where either may be the one, the less certain counts.
__device__ static inline value pick(value x, value y, bool first) {
    value d = first ? x : y;
    const double other = first ? y.e : x.e;
    if (other > d.e && (isinf(other) || within(x.v - y.v, x.e + y.e)))
        d.e = other;
    return d;
}

__device__ static inline value pick_larger(value x, value y) {
    return pick(x, y, isnan(x.v) || (!isnan(y.v) && x.v >= y.v));
}

__device__ static inline value pick_smaller(value x, value y) {
    return pick(x, y, isnan(x.v) || (!isnan(y.v) && -x.v >= -y.v));
}

__device__ static inline value value_maximum(value x, value y, int how = 0) {
    return settle(pick_larger(x, y), how, x, y);
}

__device__ static inline value value_minimum(value x, value y, int how = 0) {
    return settle(pick_smaller(x, y), how, x, y);
}

__device__ static inline value value_clamp(value x, value y, value z, int how = 0) {
    return settle(pick_smaller(pick_larger(x, y), z), how, x, y, z);
}

// ---- places ----

__device__ static inline int64_t floordiv(int64_t a, int64_t b) {
    return b == 0 ? 0 : a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

__device__ static inline int64_t floormod(int64_t a, int64_t b) {
    const int64_t r = b == 0 ? 0 : a % b;
    return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

__device__ static inline int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

__device__ static inline int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// A place computed from data: -1 where it is none.
__device__ static inline int64_t place(double at) {
    return at >= 0 && at < 0x1p62 ? (int64_t)at : -1;
}

// Nothing is known of an element whose place is uncertain.
__device__ static inline value read_at(value at, value element) {
    return value(element.v, at.e > 0 ? INFINITY : element.e);
}

__device__ static inline bool inside(int64_t at, int64_t extent) {
    return (uint64_t)at < (uint64_t)extent;
}

// ---- what is stored ----

struct expected {
    double v, estimate;
    value best; // of an index: the term it stands for
};

// A stored integer is exact or, outside its type, undefined.
__device__ static inline double integer_estimate(value x, double lo, double hi) {
    return x.v >= lo && x.v <= hi ? sqrt(x.e) : INFINITY;
}

// Storing must not eat up the allowance of the arithmetic, nor be multiplied by it: its share is
// set so that RMS shares are half an ulp.
__device__ static inline double float_estimate(dtype t, value &x) {
    const double edge = round_overflow(t), room = WORST * sqrt(x.e);
    if (isinf(x.v))
        return x.e > 0 ? 1 : 0; // NaN will do
    if (fabs(x.v) >= edge + room) {
        x.v = copysign(INFINITY, x.v);
        return 0;
    }
    if (fabs(x.v) > edge - room)
        return INFINITY;
    if (x.e == 0 && round_to(t, x.v) == x.v)
        return 0;
    const double share = round_half_ulp(t, x.v) / RMS;
    return sqrt(x.e + share * share);
}

__device__ static inline expected output_float(dtype t, value x) {
    expected r;
    r.estimate = isinf(x.e) ? INFINITY : isnan(x.v) ? 0 : float_estimate(t, x);
    r.v = x.v;
    return r;
}

__device__ static inline expected output_integer(value x, double lo, double hi) {
    expected r;
    r.estimate = isinf(x.e) || isnan(x.v) ? INFINITY : integer_estimate(x, lo, hi);
    r.v = x.v;
    return r;
}

// A typed let rounds. Away from a rounding boundary every honest evaluation rounds to the same
// number and its error is gone; near one it may be off by a whole step.
__device__ static inline value let_float(dtype t, value x) {
    if (isinf(x.e) || !isfinite(x.v))
        return x;
    const double rounded = round_to(t, x.v), half = round_half_ulp(t, x.v);
    const double room = WORST * sqrt(x.e);
    if (isinf(rounded) || room == 0)
        return value(rounded, 0);
    const bool near = fabs(x.v - rounded) + room >= half;
    return value(rounded, near ? x.e + 4 * half * half : 0);
}

__device__ static inline value let_integer(value x, double lo, double hi) {
    if (isinf(x.e) || !isfinite(x.v))
        return x;
    return value(x.v, x.v >= lo && x.v <= hi ? x.e : INFINITY);
}
