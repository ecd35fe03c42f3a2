/* Scalar arithmetic of one lane, as PTX defines it, written so that loops over it vectorise.
 *
 * Single precision is IEEE with the hardware's one NaN (0x7fffffff). Approximate functions are
 * computed in double and rounded once: they lie within what the hardware promises, but are not
 * equal to it bit by bit. */
#ifndef SIM_LANE_MATH_H
#define SIM_LANE_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static inline float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static inline uint64_t bits_of_double(double d) {
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}
static inline double double_of(uint64_t u) {
    double d;
    memcpy(&d, &u, 8);
    return d;
}

static inline float canon(float f) {
    return float_of(f == f ? bits_of(f) : 0x7fffffffu);
}
static inline float ftz(float f) {
    uint32_t u = bits_of(f);
    return float_of(u & 0x7f800000u ? u : u & 0x80000000u);
}

static inline float f_add(float a, float b) {
    return canon(a + b);
}
static inline float f_sub(float a, float b) {
    return canon(a - b);
}
static inline float f_mul(float a, float b) {
    return canon(a * b);
}
static inline float f_fma(float a, float b, float c) {
    return canon(fmaf(a, b, c));
}
static inline float f_div(float a, float b) {
    return canon(a / b);
}
/* The hardware multiplies by a reciprocal that is flushed to zero above 2^126. */
static inline float f_div_approx(float a, float b) {
    uint32_t mag = bits_of(b) & 0x7fffffffu;
    float zero = float_of(bits_of(b) & 0x80000000u);
    return canon(mag > 0x7e800000u && mag < 0x7f800000u ? a * zero : a / b);
}
static inline float f_rcp(float a) {
    return canon(1.0f / a);
}
static inline float f_sqrt(float a) {
    return canon(sqrtf(a));
}
static inline float f_rsqrt(float a) {
    return canon((float)(1.0 / sqrt((double)a)));
}
static inline float f_neg(float a) {
    return canon(float_of(bits_of(a) ^ 0x80000000u));
}
static inline float f_abs(float a) {
    return canon(float_of(bits_of(a) & 0x7fffffffu));
}
static inline float f_sat(float a) {
    return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f;
}

/* -0 is less than +0; a NaN loses, or wins where .NaN is asked for. */
static inline float f_min(float a, float b) {
    float both = float_of(bits_of(a) | bits_of(b));
    float r = a < b ? a : b < a ? b : both;
    return a != a ? canon(b) : b != b ? a : r;
}
static inline float f_max(float a, float b) {
    float both = float_of(bits_of(a) & bits_of(b));
    float r = a > b ? a : b > a ? b : both;
    return a != a ? canon(b) : b != b ? a : r;
}
static inline float f_min_nan(float a, float b) {
    return float_of(a != a || b != b ? 0x7fffffffu : bits_of(f_min(a, b)));
}
static inline float f_max_nan(float a, float b) {
    return float_of(a != a || b != b ? 0x7fffffffu : bits_of(f_max(a, b)));
}
static inline double d_min(double a, double b) {
    double both = double_of(bits_of_double(a) | bits_of_double(b));
    double r = a < b ? a : b < a ? b : both;
    return a != a ? b : b != b ? a : r;
}
static inline double d_max(double a, double b) {
    double both = double_of(bits_of_double(a) & bits_of_double(b));
    double r = a > b ? a : b > a ? b : both;
    return a != a ? b : b != b ? a : r;
}

/* 2^x: x = n + f with |f| <= 1/2, the Taylor series of e^(f ln 2) to the 10th power (error below
 * 2^-40), and n added to the exponent in two steps so that subnormal results come out rounded once
 * by the conversion to float. */
static inline float f_ex2(float x) {
    double clamped = x > 200.0f ? 200.0 : x < -200.0f ? -200.0 : x == x ? (double)x : 0.0;
    double shifted = clamped + 0x1.8p52, n = shifted - 0x1.8p52, t = (clamped - n) * M_LN2;
    double p = 1.0 / 3628800;
    p = p * t + 1.0 / 362880;
    p = p * t + 1.0 / 40320;
    p = p * t + 1.0 / 5040;
    p = p * t + 1.0 / 720;
    p = p * t + 1.0 / 120;
    p = p * t + 1.0 / 24;
    p = p * t + 1.0 / 6;
    p = p * t + 0.5;
    p = p * t + 1.0;
    p = p * t + 1.0;
    uint64_t scale = (bits_of_double(shifted) + 1023) << 52; /* n lies in shifted's low bits */
    return canon(x == x ? (float)(p * double_of(scale)) : x);
}

/* log2: mantissa m in [sqrt(1/2), sqrt 2), s = (m-1)/(m+1), log m = 2 (s + s^3/3 + …), s < 0.172,
 * so that the 15th power leaves an error below 2^-42. */
static inline float f_lg2(float x) {
    uint64_t u = bits_of_double((double)x);
    uint64_t shifted = u - UINT64_C(0x3fe6a09e667f3bcd);
    double m = double_of((shifted & UINT64_C(0x000fffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd));
    int32_t e = (int32_t)(uint32_t)(shifted >> 32) >> 20;
    double s = (m - 1.0) / (m + 1.0), q = s * s, p = 1.0 / 15;
    p = p * q + 1.0 / 13;
    p = p * q + 1.0 / 11;
    p = p * q + 1.0 / 9;
    p = p * q + 1.0 / 7;
    p = p * q + 1.0 / 5;
    p = p * q + 1.0 / 3;
    p = p * q + 1.0;
    float r = (float)(2.0 * M_LOG2E * s * p + (double)e);
    r = x == 0.0f ? -INFINITY : x == INFINITY ? INFINITY : r;
    return x >= 0.0f ? r : float_of(0x7fffffffu);
}
/* Turns instead of radians, in single precision, as the hardware does it: what that loses on large
 * arguments is lost here too. */
static inline double f_turns(float x) {
    float t = x * 0.15915494f;
    return 2 * M_PI * ((double)t - rint((double)t));
}
static inline float f_sin(float x) {
    return canon((float)sin(f_turns(x)));
}
static inline float f_cos(float x) {
    return canon((float)cos(f_turns(x)));
}
/* 11 bits: the hardware promises no more, and a kernel must not be right here by more. */
static inline float f_tanh(float x) {
    float r = (float)tanh((double)x);
    return r == r ? float_of((bits_of(r) + 0x1000u) & ~0x1fffu) : canon(r);
}

/* Halves. To float is exact; from float rounds to nearest even in integer arithmetic. */
static inline float half_to_float(uint32_t h) {
    uint32_t sign = (h & 0x8000u) << 16, mag = h & 0x7fffu;
    uint32_t normal = (mag << 13) + 0x38000000u;
    uint32_t special = (mag << 13) | 0x7f800000u;
    uint32_t small = bits_of((float)(int32_t)mag * 0x1p-24f);
    uint32_t u = mag >= 0x7c00u ? special : mag >= 0x0400u ? normal : small;
    u = mag > 0x7c00u ? 0x7fffffffu : u | sign;
    return float_of(u);
}
static inline uint32_t float_to_half(float f) {
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000u, mag = u & 0x7fffffffu;
    uint32_t normal = (mag - 0x38000000u + 0xfffu + (mag >> 13 & 1)) >> 13;
    /* Adding 1/2 lines a subnormal half's last bit up with the last bit of 0.5's mantissa. */
    uint32_t small = bits_of(float_of(mag < 0x38800000u ? mag : 0) + 0.5f) - 0x3f000000u;
    uint32_t h = mag < 0x38800000u ? small : normal;
    h = mag >= 0x477ff000u ? 0x7c00u : h;
    return mag > 0x7f800000u ? 0x7fffu : h | sign;
}
static inline float bhalf_to_float(uint32_t h) {
    return float_of(h << 16);
}
static inline uint32_t float_to_bhalf(float f) {
    uint32_t u = bits_of(f);
    uint32_t r = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
    return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : r;
}

/* p + c for exact products p, rounded to odd: rounding that again, to a format with fewer bits,
 * gives the correctly rounded sum. */
static inline double add_to_odd(double p, double c) {
    double s = p + c, bv = s - p, rest = (p - (s - bv)) + (c - bv);
    uint64_t u = bits_of_double(s);
    bool inexact = rest > 0.0 || rest < 0.0;
    bool away = inexact && (rest < 0.0) != (s < 0.0); /* s lies further from 0 than the sum */
    u = inexact && !(u & 1) ? (away ? u - 1 : u + 1) : u;
    return double_of(u);
}
/* Double to float, to odd, for the step before a half: the float keeps more than twice the bits. */
static inline float odd_float(double d) {
    float f = (float)d;
    uint32_t u = bits_of(f);
    bool inexact = (double)f != d && d == d;
    bool away = fabs((double)f) > fabs(d);
    u = inexact && !(u & 1) ? (away ? u - 1 : u + 1) : u;
    return float_of(u);
}
/* Between doubles and halves a NaN keeps its sign and the top of its payload. */
static inline uint32_t half_nan(double d) {
    uint64_t u = bits_of_double(d);
    return (uint32_t)(u >> 48 & 0x8000u) | 0x7e00u | (uint32_t)(u >> 42 & 0x3ffu);
}
static inline uint32_t bhalf_nan(double d) {
    uint64_t u = bits_of_double(d);
    return (uint32_t)(u >> 48 & 0x8000u) | 0x7fc0u | (uint32_t)(u >> 45 & 0x7fu);
}
static inline uint32_t double_to_half(double d) {
    return d == d ? float_to_half(odd_float(d)) : half_nan(d);
}
static inline uint32_t double_to_bhalf(double d) {
    return d == d ? float_to_bhalf(odd_float(d)) : bhalf_nan(d);
}
static inline double half_to_double(uint32_t h) {
    uint64_t nan =
        (uint64_t)(h & 0x8000u) << 48 | UINT64_C(0x7ff8000000000000) | (uint64_t)(h & 0x3ffu) << 42;
    return (h & 0x7fffu) > 0x7c00u ? double_of(nan) : (double)half_to_float(h);
}

#define HALF2(name, to, from)                                                                      \
    static inline uint32_t name##_add(uint32_t a, uint32_t b) {                                    \
        return from(to(a) + to(b));                                                                \
    }                                                                                              \
    static inline uint32_t name##_sub(uint32_t a, uint32_t b) {                                    \
        return from(to(a) - to(b));                                                                \
    }                                                                                              \
    static inline uint32_t name##_mul(uint32_t a, uint32_t b) {                                    \
        return from(to(a) * to(b));                                                                \
    }                                                                                              \
    static inline uint32_t name##_min(uint32_t a, uint32_t b) {                                    \
        return from(f_min(to(a), to(b)));                                                          \
    }                                                                                              \
    static inline uint32_t name##_max(uint32_t a, uint32_t b) {                                    \
        return from(f_max(to(a), to(b)));                                                          \
    }                                                                                              \
    static inline uint32_t name##_min_nan(uint32_t a, uint32_t b) {                                \
        return from(f_min_nan(to(a), to(b)));                                                      \
    }                                                                                              \
    static inline uint32_t name##_max_nan(uint32_t a, uint32_t b) {                                \
        return from(f_max_nan(to(a), to(b)));                                                      \
    }                                                                                              \
    static inline uint32_t name##_neg(uint32_t a) {                                                \
        return from(f_neg(to(a)));                                                                 \
    }                                                                                              \
    static inline uint32_t name##_abs(uint32_t a) {                                                \
        return from(f_abs(to(a)));                                                                 \
    }                                                                                              \
    static inline uint32_t name##_ex2(uint32_t a) {                                                \
        return from(f_ex2(to(a)));                                                                 \
    }                                                                                              \
    static inline uint32_t name##_tanh(uint32_t a) {                                               \
        return from(f_tanh(to(a)));                                                                \
    }                                                                                              \
    static inline uint32_t name##_fma(uint32_t a, uint32_t b, uint32_t c) {                        \
        double sum = add_to_odd((double)to(a) * (double)to(b), (double)to(c));                     \
        return from(odd_float(sum));                                                               \
    }                                                                                              \
    static inline uint32_t name##_fma_relu(uint32_t a, uint32_t b, uint32_t c) {                   \
        uint32_t r = name##_fma(a, b, c);                                                          \
        return r >> 15 & 1 ? 0 : r;                                                                \
    }
HALF2(h, half_to_float, float_to_half)
HALF2(bh, bhalf_to_float, float_to_bhalf)
#undef HALF2

/* Which of several NaNs comes out differs between processors: the GPU gives the last operand's (of
 * an fma the second's, else the third's), quiet, and one of its own where no operand is one. */
#define QUIET (UINT64_C(1) << 51)
static inline double d_result(double r, double a, double b) {
    uint64_t nan = b != b   ? bits_of_double(b) | QUIET
                   : a != a ? bits_of_double(a) | QUIET
                            : UINT64_C(0xfff8000000000000);
    return r == r ? r : double_of(nan);
}
static inline double d_add(double a, double b) {
    return d_result(a + b, a, b);
}
static inline double d_sub(double a, double b) {
    return d_result(a - b, a, b);
}
static inline double d_mul(double a, double b) {
    return d_result(a * b, a, b);
}
static inline double d_fma(double a, double b, double c) {
    double r = fma(a, b, c);
    return b != b ? d_result(r, b, b) : d_result(r, a, c);
}
/* The sign of a number; a NaN keeps its own. */
static inline double d_neg(double a) {
    return double_of(a == a ? bits_of_double(a) ^ UINT64_C(0x8000000000000000)
                            : bits_of_double(a) | QUIET);
}
static inline double d_abs(double a) {
    return double_of(a == a ? bits_of_double(a) & INT64_MAX : bits_of_double(a) | QUIET);
}

/* The hardware's seeds for division and roots: of the argument and of the result only the upper
 * halves are there, the result's within one unit. Subnormal numbers are zeros. */
static inline double d_upper(double a) {
    uint64_t u = bits_of_double(a);
    uint64_t keep = u >> 52 & 0x7ff ? UINT64_C(0xffffffff00000000) : UINT64_C(0x8000000000000000);
    return a == a ? double_of(u & keep) : double_of(UINT64_C(0x7fffffff00000000));
}
static inline double d_rcp_seed(double a) {
    return d_upper(1.0 / d_upper(a));
}
static inline double d_rsqrt_seed(double a) {
    return d_upper(1.0 / sqrt(d_upper(a)));
}
static inline double d_rsqrt(double a) {
    double r = 1.0 / sqrt(a);
    return r == r ? r : d_result(r, a, a);
}

/* Float to integer, after rounding to an integral value: saturates; a NaN gives `nan`. */
static inline int64_t to_integer(double d, double lo, double hi_excl, int64_t min, int64_t max,
                                 int64_t nan) {
    if (d != d)
        return nan;
    if (d < lo)
        return min;
    return d >= hi_excl ? max : (int64_t)d;
}
static inline uint64_t to_unsigned64(double d) {
    if (d != d)
        return UINT64_C(1) << 63;
    if (d <= 0.0)
        return 0;
    return d >= 0x1p64 ? UINT64_MAX : (uint64_t)d;
}

static inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t sel) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t s = sel >> 4 * k & 0xf;
        uint32_t byte = (uint32_t)(bytes >> 8 * (s & 7)) & 0xff;
        if (s & 8)
            byte = byte & 0x80 ? 0xff : 0;
        r |= byte << 8 * k;
    }
    return r;
}
static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t lut) {
    uint32_t r = 0;
    for (uint32_t k = 0; k < 8; k++) {
        uint32_t term = (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
        r |= lut >> k & 1 ? term : 0;
    }
    return r;
}
static inline uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t n) { /* n <= 32 */
    return n == 0 ? b : n == 32 ? a : b << n | a >> (32 - n);
}
static inline uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t n) {
    return n == 0 ? a : n == 32 ? b : b << (32 - n) | a >> n;
}
/* A bit field of `len` bits at `pos`; past the top it is filled with zeros or the sign bit. */
static inline uint64_t bfe(uint64_t v, uint32_t pos, uint32_t len, unsigned width, bool sgn) {
    pos &= 0xff;
    len &= 0xff;
    unsigned top = pos + len - 1 < width - 1 ? pos + len - 1 : width - 1;
    uint64_t sign = sgn && len ? v >> top & 1 : 0;
    uint64_t field = pos < width ? v >> pos : 0;
    uint64_t known = pos < width ? width - pos : 0; /* bits that exist */
    uint64_t use = len < known ? len : known;
    uint64_t mask = use >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << use) - 1;
    return (field & mask) | (sign ? ~mask : 0);
}
static inline uint64_t bfi(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, unsigned width) {
    pos &= 0xff;
    len &= 0xff;
    if (pos >= width || len == 0)
        return b;
    unsigned use = len < width - pos ? len : width - pos;
    uint64_t mask = (use >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << use) - 1) << pos;
    return (b & ~mask) | (a << pos & mask);
}
static inline uint64_t reverse_bits(uint64_t v, unsigned width) {
    uint64_t r = 0;
    for (unsigned k = 0; k < width; k++)
        r |= (v >> k & 1) << (width - 1 - k);
    return r;
}
static inline uint32_t bfind(uint64_t v) { /* position of the highest one; ~0: none */
    return v ? 63u - (uint32_t)__builtin_clzll(v) : ~0u;
}
static inline int32_t dp4(uint32_t a, uint32_t b, bool sa, bool sb) {
    int32_t sum = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t x = a >> 8 * k & 0xff, y = b >> 8 * k & 0xff;
        sum += (sa ? (int8_t)x : (int32_t)x) * (sb ? (int8_t)y : (int32_t)y);
    }
    return sum;
}

/* x / 0 is all ones, x % 0 is x, and the most negative number divided by -1 is itself. */
static inline int64_t div_signed(int64_t a, int64_t b) {
    if (b == 0)
        return -1;
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static inline int64_t rem_signed(int64_t a, int64_t b) {
    if (b == 0)
        return a;
    return b == -1 ? 0 : a % b;
}

static inline int32_t dp2(uint32_t a, uint32_t b, bool sa, bool sb) {
    int32_t sum = 0;
    for (int i = 0; i < 2; i++) {
        int32_t x = sa ? (int16_t)(a >> 16 * i) : (int32_t)(a >> 16 * i & 0xffff);
        int32_t y = sb ? (int8_t)(b >> 8 * i) : (int32_t)(b >> 8 * i & 0xff);
        sum = (int32_t)((uint32_t)sum + (uint32_t)x * (uint32_t)y);
    }
    return sum;
}
static inline uint32_t absdiff4(uint32_t a, uint32_t b, bool sgn) {
    uint32_t r = 0;
    for (int i = 0; i < 32; i += 8) {
        int32_t x = sgn ? (int8_t)(a >> i) : (int32_t)(a >> i & 0xff);
        int32_t y = sgn ? (int8_t)(b >> i) : (int32_t)(b >> i & 0xff);
        r |= ((uint32_t)(x > y ? x - y : y - x) & 0xff) << i;
    }
    return r;
}
static inline uint32_t sum4(uint32_t v) {
    return (v & 0xff) + (v >> 8 & 0xff) + (v >> 16 & 0xff) + (v >> 24);
}
/* The n-th set bit from `base`, upwards or, for negative n, downwards; ~0: there is none. A GPU has
 * no instruction for it, and the compiler's routine searches for the -n-th bit of the mask turned
 * round: -2^31 stays negative there, is not too many, and ends at bit 0. */
static inline uint32_t find_nth(uint32_t mask, uint32_t base, int32_t n) {
    int32_t step = n < 0 ? -1 : 1, left = n < 0 ? -(n + 1) : n - 1;
    if (n == INT32_MIN)
        return 0;
    if (n == 0)
        return base < 32 && mask >> base & 1 ? base : ~0u;
    for (int64_t i = base; i >= 0 && i < 32; i += step)
        if (mask >> i & 1 && left-- == 0)
            return (uint32_t)i;
    return ~0u;
}
static inline uint32_t bit_mask(uint32_t from, uint32_t n) {
    uint64_t ones = n >= 32 ? UINT32_MAX : (UINT64_C(1) << n) - 1;
    return from >= 32 ? 0 : (uint32_t)(ones << from);
}

/* Rounds to the nearest half, then one step back where that went the wrong way. A half's neighbours
 * are its bits plus or minus one, infinity included. */
static inline uint32_t step_half(uint32_t h, float is, float f, int mode) {
    bool up = is > f, down = is < f, negative = h >> 15 & 1;
    bool zero = (h & 0x7fff) == 0;
    if (mode == 1 ? fabsf(is) > fabsf(f) : mode == 2 ? up && !negative && !zero : down && negative)
        return zero ? h : h - 1; /* towards zero */
    if (mode == 2 && up)
        return zero ? 0x8001 : h + 1;
    if (mode == 3 && down)
        return zero ? 0x0001 : h + 1;
    return h;
}
static inline uint32_t half_towards(float f, int mode) {
    uint32_t h = float_to_half(f);
    return f == f ? step_half(h, half_to_float(h), f, mode) : h;
}
static inline uint32_t bhalf_towards(float f, int mode) {
    uint32_t h = float_to_bhalf(f);
    return f == f ? step_half(h, bhalf_to_float(h), f, mode) : h;
}
static inline uint32_t double_half_towards(double d, int mode) {
    return d == d ? half_towards(odd_float(d), mode) : half_nan(d);
}
static inline uint32_t double_bhalf_towards(double d, int mode) {
    return d == d ? bhalf_towards(odd_float(d), mode) : bhalf_nan(d);
}
/* Integers to double, to odd: what is rounded again afterwards is rounded once. */
static inline double odd_double(__int128 v) {
    double d = (double)v;
    __int128 back = (__int128)d;
    uint64_t u = bits_of_double(d);
    bool away = (back < 0 ? -back : back) > (v < 0 ? -v : v);
    return back != v && !(u & 1) ? double_of(away ? u - 1 : u + 1) : d;
}

/* 8-bit floats with `man` bits of mantissa: e4m3 has no infinity, e5m2 does, and both saturate when
 * they are made (.satfinite), to the magnitude `max`. */
static inline uint32_t eight_of(float f, int man, uint32_t max) {
    uint32_t sign = bits_of(f) >> 24 & 0x80;
    int bias = man == 3 ? 7 : 15, lowest = 1 - bias, e = lowest;
    float mag = fabsf(f);
    if (f != f)
        return 0x7f;
    if (mag >= 0x1p16f)
        return sign | max;
    while (e < 15 && mag >= ldexpf(2, e))
        e++;
    uint32_t q = (uint32_t)rintf(ldexpf(mag, man - e));
    uint32_t code = q < 1u << man ? q : ((uint32_t)(e + bias) << man) + q - (1u << man);
    return sign | (code > max ? max : code);
}
static inline float float_of_eight(uint32_t v, int man) {
    int bias = man == 3 ? 7 : 15, e = (int)(v & 0x7f) >> man;
    uint32_t m = v & ((1u << man) - 1), mag = v & 0x7f;
    float r = e ? ldexpf((float)(m | 1u << man), e - bias - man) : ldexpf((float)m, 1 - bias - man);
    if (man == 3 ? mag == 0x7f : mag > 0x7c)
        r = float_of(0x7fffffff);
    else if (man == 2 && mag == 0x7c)
        r = float_of(0x7f800000);
    return v & 0x80 ? -r : r;
}

#endif
