/* Rounding to element types, and the formats that C has no type for. Every float type is rounded
 * once, directly from double: going through fp32 would round twice. Read by two compilers
 * (spec/shared.h). Private to the room and to the oracle. */
#ifndef SPEC_CONVERT_VALUE_H
#define SPEC_CONVERT_VALUE_H

#include "spec/shared.h"
#include "spec/task.h"

/* Bits of the significand. */
SHARED int format_bits(enum dtype t) {
    return t == DTYPE_F32 ? 24 : t == DTYPE_F16 ? 11 : t == DTYPE_BF16 ? 8 : 53;
}

/* The exponent of the smallest normal number. */
SHARED int format_least(enum dtype t) {
    return t == DTYPE_F16 ? -14 : t == DTYPE_F32 || t == DTYPE_BF16 ? -126 : -1022;
}

/* The largest number. */
SHARED double format_most(enum dtype t) {
    return t == DTYPE_F32    ? 0x1.fffffep127
           : t == DTYPE_F16  ? 65504
           : t == DTYPE_BF16 ? 0x1.fep127
                             : 0x1.fffffffffffffp1023;
}

/* 2^e for a normal double. */
SHARED double power_of_two(int e) {
    return double_of_bits((uint64_t)(e + 1023) << 52);
}

/* Half the distance to the next number of a float type at v, subnormals included. */
SHARED_APART double round_half_ulp(enum dtype t, double v) {
    int e = (int)(double_bits(v) >> 52 & 0x7ff) - 1023;
    e = e < format_least(t) ? format_least(t) : e;
    return e - format_bits(t) < -1022 ? 0 : power_of_two(e - format_bits(t));
}

/* The smallest magnitude that rounds to infinity. */
SHARED double round_overflow(enum dtype t) {
    double most = format_most(t);
    return t == DTYPE_F64 ? INFINITY : most + round_half_ulp(t, most);
}

/* To the nearest number of a float type, ties to even; overflow gives infinity. */
SHARED_APART double round_to(enum dtype t, double v) {
    if (t == DTYPE_F64 || !isfinite(v) || v == 0)
        return v;
    if (t == DTYPE_F32)
        return (double)(float)v;
    double step = 2 * round_half_ulp(t, v);
    double r = copysign(rint(fabs(v) / step) * step, v);
    return fabs(r) > format_most(t) ? copysign(INFINITY, v) : r;
}

/* A quiet NaN in a narrower format: the sign and the upper bits of the payload stay, as C's
 * conversion to float leaves them. Written out because a GPU's conversions make one NaN of all. */
SHARED uint32_t nan_f32_bits(double v) {
    uint64_t b = double_bits(v);
    return (uint32_t)(b >> 32 & 0x80000000u) | 0x7fc00000u | (uint32_t)(b >> 29 & 0x3fffff);
}

SHARED uint16_t bf16_encode(double v) {
    if (isnan(v))
        return (uint16_t)(nan_f32_bits(v) >> 16);
    return (uint16_t)(float_bits((float)round_to(DTYPE_BF16, v)) >> 16);
}

SHARED double bf16_decode(uint16_t h) {
    return (double)float_of_bits((uint32_t)h << 16);
}

SHARED uint16_t f16_encode(double v) {
    uint16_t sign = double_bits(v) >> 63 ? 0x8000 : 0;
    double m = fabs(round_to(DTYPE_F16, v));
    if (isnan(v))
        return (uint16_t)(sign | 0x7e00 | (double_bits(v) >> 42 & 0x1ff));
    if (isinf(m))
        return sign | 0x7c00;
    if (m < 0x1p-14)
        return sign | (uint16_t)(m * 0x1p24);
    int e = (int)(double_bits(m) >> 52 & 0x7ff) - 1023;
    uint16_t fraction = (uint16_t)(double_bits(m) >> 42 & 0x3ff);
    return (uint16_t)(sign | (e + 15) << 10 | fraction);
}

SHARED double f16_decode(uint16_t h) {
    int e = h >> 10 & 31, fraction = h & 0x3ff;
    double m = e == 31  ? (fraction ? NAN : INFINITY)
               : e == 0 ? fraction * 0x1p-24
                        : (1024 + fraction) * power_of_two(e - 25);
    return h & 0x8000 ? -m : m;
}

/* What an integer type that ends at lo and hi cannot hold becomes its nearest bound, NaN 0. */
SHARED double whole_fit(double v, double lo, double hi) {
    return isnan(v) ? 0 : v < lo ? lo : v > hi ? hi : trunc(v);
}

#endif
