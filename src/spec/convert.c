/* Stored elements to double and back. */
#include "spec/convert.h"

#include "spec/bind.h"
#include "spec/convert_value.h"
#include "spec/data.h"

double dtype_half_ulp(enum dtype t, double v) {
    return round_half_ulp(t, v);
}

double dtype_round(enum dtype t, double v) {
    return round_to(t, v);
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

static double fit(enum dtype t, double v) {
    double lo, hi;
    dtype_limits(t, &lo, &hi);
    if (t == DTYPE_I64)
        hi = 0x1.fffffffffffffp62; /* the largest double below 2^63 */
    return whole_fit(v, lo, hi);
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
