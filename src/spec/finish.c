/* What becomes of a result when it is stored. An output's value stays the fp64 one and its variance
 * becomes an estimate, with what storing it in its type costs; a typed let is rounded to its type.
 *
 * Results come in blocks. Floats well inside their type are finished in vectors; what is out of the
 * ordinary goes one by one. */
#include "base/wide.h"

#include "spec/finish.h"

#include "spec/bind.h"

#include <math.h>
#include <string.h>

static double output_estimate(const struct finish *f, struct value *x) {
    double lo, hi;
    if (dtype_info(f->dtype)->kind == 'f')
        return float_estimate(f->limits, f->dtype, x);
    dtype_limits(f->dtype, &lo, &hi);
    return integer_estimate(*x, lo, hi);
}

static struct value let_value(const struct finish *f, struct value x) {
    double lo, hi;
    if (dtype_info(f->dtype)->kind == 'f')
        return let_float(f->limits, f->dtype, x);
    dtype_limits(f->dtype, &lo, &hi);
    return let_integer(x, lo, hi);
}

/* float_estimate of fp32 well inside its range, without branches; returns how many may lie too near
 * the end of their type, or are no numbers, whose estimates mean nothing. */
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
        if (!(fabs(v[l]) < edge - f->limits.worst * sqrt(e[l]))) {
            struct value x = value_of(v[l], e[l]);
            error[l] = output_estimate(f, &x);
            value[l] = x.v;
        }
}

void finish_results(const struct finish *f, const double *v, const double *e, size_t n,
                    double *value, double *error) {
    if (f->output && f->dtype == DTYPE_F32) {
        f32_outputs(f, v, e, n, value, error);
        return;
    }
    memcpy(value, v, n * sizeof *v);
    memcpy(error, e, n * sizeof *e);
    for (size_t l = 0; l < n && (f->output || f->typed_let); l++) {
        struct value x = value_of(v[l], e[l]);
        if (f->output)
            x.e = output_estimate(f, &x);
        else
            x = let_value(f, x);
        value[l] = x.v;
        error[l] = x.e;
    }
}
