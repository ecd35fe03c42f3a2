/* The exponential and its kin in fp64, without branches, so that loops over them become vectors:
 * references of whole tensors call them more often than anything else. Private to the room.
 *
 * e^x = 2^k·e^r with x = k·ln 2 + r, |r| ≤ ½·ln 2, and e^r - 1 by its series, whose first term left
 * out is below 2^-57. Good to 1 unit in the last place (exponential) and 3 (tangent, and a
 * sigmoid that is made from it):
 * nothing beside the roundings of fp32 that estimates are made of. */
#ifndef SPEC_EXPONENTIAL_H
#define SPEC_EXPONENTIAL_H

#include "spec/shared.h"

#include <math.h>

#define EXP_WHOLE 0x1.8p52 /* what is added to it leaves no bits for a fraction */

/* 2^k of a whole k within a double's exponents. */
static inline double exp_power(double k) {
    return double_of_bits((double_bits(k + EXP_WHOLE) << 52) + double_bits(1.0));
}

/* e^r - 1; |x| is moderate, and *k is whole. */
static inline double exp_rest(double x, double *k) {
    static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
    static const double series[12] = {
        1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
        1.0 / 5040,       1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      1.0 / 2};
    *k = x * 1.4426950408889634 + EXP_WHOLE - EXP_WHOLE;
    double r = (x - *k * ln2_high) - *k * ln2_low, sum = series[0];
#pragma GCC unroll 11
    for (int i = 1; i < 12; i++)
        sum = sum * r + series[i];
    return r + r * r * sum;
}

/* In two steps, so that what is smaller than normal numbers is rounded once. */
static inline double exponential(double x) {
    double within = x < -800 ? -800 : x > 800 ? 800 : x, k, rest = exp_rest(within, &k);
    double half = k * 0.5 + EXP_WHOLE - EXP_WHOLE;
    return (1 + rest) * exp_power(half) * exp_power(k - half);
}

/* Of m = e^(2|x|) - 1, which keeps its digits near 0: m/(m + 2). Beyond 22 it is 1. */
static inline double exp_tangent(double x) {
    double y = 2 * fabs(x), within = y > 44 ? 44 : y, k, rest = exp_rest(within, &k);
    double power = exp_power(k), m = power * rest + (power - 1);
    return copysign(m / (m + 2), x);
}

/* For value.h, which is included after this. */
#define EXP  exponential
#define TANH exp_tangent

#endif
