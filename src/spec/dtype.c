/* The small tables of the language: element types, accuracy classes, functions. */
#include "spec/bind.h"
#include "spec/convert_value.h"
#include "spec/data.h"
#include "spec/value.h"

static const struct dtype_info dtypes[DTYPE_COUNT] = {
#define DTYPE(id, name, bytes, cuda, npy, kind) {name, bytes, cuda, npy, kind},
#include "spec/dtype.def"
#undef DTYPE
};

const struct dtype_info *dtype_info(enum dtype t) {
    BUG_IF((unsigned)t >= DTYPE_COUNT);
    return &dtypes[t];
}

int dtype_digits(enum dtype t) {
    const struct dtype_info *d = dtype_info(t);
    return d->kind == 'f' && d->bytes < 8 ? 9 : 17;
}

bool dtype_find(str name, enum dtype *out) {
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (str_is(name, dtypes[i].name)) {
            *out = (enum dtype)i;
            return true;
        }
    return false;
}

static const struct {
    const char *name;
    double unit;
} accuracies[ACCURACY_COUNT] = {
    [ACCURACY_FP32] = {"fp32", 0x1p-24},
    [ACCURACY_TF32] = {"tf32", 0x1p-11},
    [ACCURACY_F16] = {"f16", 0x1p-11},
    [ACCURACY_BF16] = {"bf16", 0x1p-8},
};

const char *accuracy_name(enum accuracy a) {
    BUG_IF((unsigned)a >= ACCURACY_COUNT);
    return accuracies[a].name;
}

double accuracy_unit(enum accuracy a) {
    BUG_IF((unsigned)a >= ACCURACY_COUNT);
    return accuracies[a].unit;
}

struct limits accuracy_limits(enum accuracy a) {
    return a == ACCURACY_FP32 ? (struct limits){32, 8} : (struct limits){8, 2};
}

/* The smallest number above zero of the format that operands are rounded to. */
static double smallest_operand(enum accuracy a) {
    return a == ACCURACY_F16 ? 0x1p-24 : a == ACCURACY_BF16 ? 0x1p-133 : 0x1p-136;
}

struct rules rules_of(enum accuracy a) {
    struct limits limits = accuracy_limits(a);
    double widen = accuracy_limits(ACCURACY_FP32).worst / limits.worst;
    struct rules r = {limits, 0x1p-48 * widen * widen, 0x1p-300 * widen * widen, 0, 0, 0};
    if (a == ACCURACY_FP32)
        return r;
    /* Rounding to nearest is uniform over half an ulp either way. The accumulator's bias, allowed
     * twice over by the limits: 0.06·K units of 2^-24 of a positive sum, where running sums are
     * half of the whole on average. A chain of mma.sync.tf32 over K = 4,096 has 0.11·K in the root
     * mean square on uniform data, its operands' rounding included, and comes to 0.93 of the limit
     * on sorted ones. Truncated operands come to 2.3 of it over K = 65,536: there is no more room.
     */
    r.operand2 = accuracy_unit(a) * accuracy_unit(a) / 3;
    double half = smallest_operand(a) / 2;
    r.format2 = half * half / 3;
    r.truncation = 2 * 0.06 * 0x1p-24;
    return r;
}

#undef RULE_SMOOTH
#undef RULE_POWER
#undef RULE_EXACT
#define RULE_SMOOTH(slope, of_result, of_argument, absolute, least, edge)                          \
    of_result, of_argument, absolute, least
#define RULE_POWER(of_result, least) of_result, 0, 0, least
#define RULE_EXACT(variance)         0, 0, 0, 0

static const struct function_info functions[FUNCTION_COUNT] = {
#define FUNCTION(id, name, args, formula, rule, result, pole, flattens, cuda, fast, integer)       \
    {#name, args, RESULT_##result, pole, rule, cuda, fast, integer},
#include "spec/function.def"
#undef FUNCTION
};

const struct function_info *function_info(enum function f) {
    BUG_IF((unsigned)f >= FUNCTION_COUNT);
    return &functions[f];
}

bool function_takes_integers(enum function f) {
    return function_info(f)->result >= RESULT_BITS;
}

bool function_find(str name, enum function *out) {
    for (int i = 0; i < FUNCTION_COUNT; i++)
        if (str_is(name, functions[i].name)) {
            *out = (enum function)i;
            return true;
        }
    return false;
}

/* Stored elements to double and back. */

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
