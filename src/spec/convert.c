/* Stored elements to double and back. Every float type is rounded once, directly from double: going
 * through fp32 would round twice. */
#include "spec/convert.h"

#include "spec/bind.h"
#include "spec/data.h"
#include <math.h>
#include <string.h>

/* Bits of the significand and the exponent of the smallest normal number. */
struct format {
    int bits, least;
    double most;
};

static struct format format_of(enum dtype t) {
    switch (t) {
    case DTYPE_F32:
        return (struct format){24, -126, 0x1.fffffep127};
    case DTYPE_F16:
        return (struct format){11, -14, 65504};
    case DTYPE_BF16:
        return (struct format){8, -126, 0x1.fep127};
    default:
        return (struct format){53, -1022, 0x1.fffffffffffffp1023};
    }
}

static uint64_t bits_of(double v) {
    uint64_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}

/* 2^e for a normal double. */
static double power_of_two(int e) {
    uint64_t b = (uint64_t)(e + 1023) << 52;
    double v;
    memcpy(&v, &b, sizeof v);
    return v;
}

double dtype_half_ulp(enum dtype t, double v) {
    struct format f = format_of(t);
    int e = (int)(bits_of(v) >> 52 & 0x7ff) - 1023;
    e = e < f.least ? f.least : e;
    return e - f.bits < -1022 ? 0 : power_of_two(e - f.bits);
}

double dtype_overflow(enum dtype t) {
    double most = format_of(t).most;
    return t == DTYPE_F64 ? INFINITY : most + dtype_half_ulp(t, most);
}

double dtype_round(enum dtype t, double v) {
    if (t == DTYPE_F64 || !isfinite(v) || v == 0)
        return v;
    if (t == DTYPE_F32)
        return (double)(float)v;
    double step = 2 * dtype_half_ulp(t, v);
    double r = copysign(rint(fabs(v) / step) * step, v);
    return fabs(r) > format_of(t).most ? copysign(INFINITY, v) : r;
}

static uint16_t bf16_encode(double v) {
    float f = (float)dtype_round(DTYPE_BF16, v);
    uint32_t b;
    memcpy(&b, &f, sizeof b);
    return isnan(v) ? (uint16_t)(0x7fc0 | (b >> 16 & 0x8000)) : (uint16_t)(b >> 16);
}

static double bf16_decode(uint16_t h) {
    uint32_t b = (uint32_t)h << 16;
    float f;
    memcpy(&f, &b, sizeof f);
    return (double)f;
}

static uint16_t f16_encode(double v) {
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    double m = fabs(dtype_round(DTYPE_F16, v));
    if (isnan(v))
        return sign | 0x7e00;
    if (isinf(m))
        return sign | 0x7c00;
    if (m < 0x1p-14)
        return sign | (uint16_t)(m * 0x1p24);
    int e = (int)(bits_of(m) >> 52 & 0x7ff) - 1023;
    uint16_t fraction = (uint16_t)(bits_of(m) >> 42 & 0x3ff);
    return (uint16_t)(sign | (e + 15) << 10 | fraction);
}

static double f16_decode(uint16_t h) {
    int e = h >> 10 & 31, fraction = h & 0x3ff;
    double m = e == 31  ? (fraction ? NAN : INFINITY)
               : e == 0 ? fraction * 0x1p-24
                        : (1024 + fraction) * power_of_two(e - 25);
    return h & 0x8000 ? -m : m;
}

#define LOAD(T, expression)                                                                        \
    for (size_t i = 0; i < n; i++) {                                                               \
        T x = ((const T *)src)[i];                                                                 \
        dst[i] = (expression);                                                                     \
    }                                                                                              \
    break

void data_load(enum dtype t, const void *src, size_t n, double *dst) {
    switch (t) {
    case DTYPE_F64:
        LOAD(double, x);
    case DTYPE_F32:
        LOAD(float, (double)x);
    case DTYPE_F16:
        LOAD(uint16_t, f16_decode(x));
    case DTYPE_BF16:
        LOAD(uint16_t, bf16_decode(x));
    case DTYPE_I8:
        LOAD(int8_t, (double)x);
    case DTYPE_U8:
        LOAD(uint8_t, (double)x);
    case DTYPE_I32:
        LOAD(int32_t, (double)x);
    case DTYPE_I64:
        LOAD(int64_t, (double)x);
    case DTYPE_BOOL:
        LOAD(uint8_t, x != 0 ? 1.0 : 0.0);
    case DTYPE_COUNT:
        BUG_IF(true);
    }
}

/* What an integer type cannot hold becomes its nearest bound, NaN becomes 0. */
static double fit(enum dtype t, double v) {
    double lo, hi;
    dtype_limits(t, &lo, &hi);
    if (t == DTYPE_I64)
        hi = 0x1.fffffffffffffp62; /* the largest double below 2^63 */
    return isnan(v) ? 0 : v < lo ? lo : v > hi ? hi : trunc(v);
}

#define STORE(T, expression)                                                                       \
    for (size_t i = 0; i < n; i++) {                                                               \
        double x = src[i];                                                                         \
        ((T *)dst)[i] = (T)(expression);                                                           \
    }                                                                                              \
    break

void data_store(enum dtype t, const double *src, size_t n, void *dst) {
    switch (t) {
    case DTYPE_F64:
        STORE(double, x);
    case DTYPE_F32:
        STORE(float, x);
    case DTYPE_F16:
        STORE(uint16_t, f16_encode(x));
    case DTYPE_BF16:
        STORE(uint16_t, bf16_encode(x));
    case DTYPE_I8:
        STORE(int8_t, fit(t, x));
    case DTYPE_U8:
        STORE(uint8_t, fit(t, x));
    case DTYPE_I32:
        STORE(int32_t, fit(t, x));
    case DTYPE_I64:
        STORE(int64_t, fit(t, x));
    case DTYPE_BOOL:
        STORE(uint8_t, x != 0);
    case DTYPE_COUNT:
        BUG_IF(true);
    }
}
