/* What a header needs that two compilers read: C11 for this program and, embedded as an asset,
 * CUDA C++ for the oracle (kernel/oracle.h), so that both make the same bits from one text. Such a
 * header keeps to what both languages know (no compound literals, no designated initialisers), to
 * IEEE arithmetic, and to functions that both libraries round alike; what it includes is for C
 * alone. Neither compiler may contract a product and a sum. */
#ifndef SPEC_SHARED_H
#define SPEC_SHARED_H

#ifdef __CUDACC__

#define SHARED       __device__ static inline
#define SHARED_APART __device__ __noinline__ static /* what is long and called from many places */

typedef signed char int8_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INFINITY __longlong_as_double(0x7ff0000000000000ll)
#define NAN      __longlong_as_double(0x7ff8000000000000ll)

SHARED uint64_t double_bits(double v) {
    return (uint64_t)__double_as_longlong(v);
}
SHARED double double_of_bits(uint64_t b) {
    return __longlong_as_double((long long)b);
}
SHARED uint32_t float_bits(float v) {
    return __float_as_uint(v);
}
SHARED float float_of_bits(uint32_t b) {
    return __uint_as_float(b);
}

#else

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SHARED       __attribute__((always_inline)) static inline
#define SHARED_APART static inline

SHARED uint64_t double_bits(double v) {
    uint64_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}
SHARED double double_of_bits(uint64_t b) {
    double v;
    memcpy(&v, &b, sizeof v);
    return v;
}
SHARED uint32_t float_bits(float v) {
    uint32_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}
SHARED float float_of_bits(uint32_t b) {
    float v;
    memcpy(&v, &b, sizeof v);
    return v;
}

#endif
#endif
