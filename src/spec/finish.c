/* What becomes of a result when it is stored. An output's value stays the fp64 one and its variance
 * becomes an estimate, with what storing it in its type costs; a typed let is rounded to its type.
 *
 * Results come in blocks. Floats well inside their type are finished in vectors; what is out of the
 * ordinary goes one by one. */
#include "base/wide.h"

#include "spec/finish.h"

#include "spec/bind.h"
#include "spec/convert_value.h"

#include <math.h>
#include <string.h>

/* A stored integer is exact or, outside its type, undefined. */
static double integer_estimate(enum dtype t, double v, double variance) {
    double lo, hi;
    dtype_limits(t, &lo, &hi);
    return v >= lo && v <= hi ? sqrt(variance) : INFINITY;
}

/* Storing must not eat up the allowance of the arithmetic, nor be multiplied by it: its share is
 * set so that rms_limit shares are half an ulp. */
static inline double inside_estimate(const struct finish *f, double v, double variance) {
    double share = round_half_ulp(f->dtype, v) / f->limits.rms;
    double estimate = sqrt(variance + share * share);
    return variance == 0 && round_to(f->dtype, v) == v ? 0 : estimate;
}

static double float_estimate(const struct finish *f, double *v, double variance) {
    double edge = round_overflow(f->dtype), room = f->limits.worst * sqrt(variance);
    if (isinf(*v))
        return variance > 0; /* NaN will do */
    if (fabs(*v) >= edge + room) {
        *v = copysign(INFINITY, *v);
        return 0;
    }
    return fabs(*v) > edge - room ? INFINITY : inside_estimate(f, *v, variance);
}

static double output_estimate(const struct finish *f, double *v, double variance) {
    char kind = dtype_info(f->dtype)->kind;
    if (isinf(variance) || (isnan(*v) && kind != 'f'))
        return INFINITY;
    if (isnan(*v))
        return 0;
    return kind == 'f' ? float_estimate(f, v, variance) : integer_estimate(f->dtype, *v, variance);
}

/* Away from a rounding boundary every honest evaluation rounds to the same number and its error is
 * gone; near one it may be off by a whole step. */
static double let_variance(const struct finish *f, double *v, double variance) {
    double exact = *v;
    if (!f->typed_let || isinf(variance) || !isfinite(exact))
        return variance;
    if (dtype_info(f->dtype)->kind != 'f')
        return isinf(integer_estimate(f->dtype, exact, 0)) ? INFINITY : variance;
    *v = round_to(f->dtype, exact);
    double half = round_half_ulp(f->dtype, exact);
    double room = f->limits.worst * sqrt(variance);
    if (isinf(*v) || room == 0)
        return 0;
    bool near = fabs(exact - *v) + room >= half;
    return near ? variance + 4 * half * half : 0;
}

/* inside_estimate of fp32 where it holds; returns how many may lie too near the end of their type,
 * or are no numbers, whose estimates mean nothing. */
WIDE static uint64_t f32_estimates(const double *restrict v, const double *restrict variance,
                                   size_t n, double worst, double rms, double edge,
                                   double *restrict out) {
    const uint64_t least = 1023 - 126;
    uint64_t odd = 0;
    for (size_t l = 0; l < n; l++) {
        uint64_t field = double_bits(v[l]) >> 52 & 0x7ff;
        uint64_t half = ((field < least ? least : field) - 24) << 52;
        double share = double_of_bits(half) / rms;
        bool exact = (variance[l] == 0) & ((double)(float)v[l] == v[l]);
        double estimate = sqrt(variance[l] + share * share);
        out[l] = (exact ? 0.0 : 1.0) * estimate;
        odd += fabs(v[l]) < edge - worst * estimate ? 0 : 1;
    }
    return odd;
}

static void f32_outputs(const struct finish *f, const double *v, const double *e, size_t n,
                        double *value, double *error) {
    double edge = round_overflow(DTYPE_F32);
    bool odd = f32_estimates(v, e, n, f->limits.worst, f->limits.rms, edge, error) > 0;
    memcpy(value, v, n * sizeof *v);
    for (size_t l = 0; l < n && odd; l++)
        if (!(fabs(v[l]) < edge - f->limits.worst * sqrt(e[l])))
            error[l] = output_estimate(f, &value[l], e[l]);
}

void finish_results(const struct finish *f, const double *v, const double *e, size_t n,
                    double *value, double *error) {
    if (f->output && f->dtype == DTYPE_F32) {
        f32_outputs(f, v, e, n, value, error);
        return;
    }
    memcpy(value, v, n * sizeof *v);
    memcpy(error, e, n * sizeof *e);
    for (size_t l = 0; l < n && (f->output || f->typed_let); l++)
        error[l] =
            f->output ? output_estimate(f, &value[l], e[l]) : let_variance(f, &value[l], e[l]);
}
