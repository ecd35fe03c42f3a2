/* One element of an output against what is expected of it, and what many of them came to. Read by
 * two compilers (spec/shared.h). Classes first (NaN, infinities and their signs), values after;
 * every comparison is written so that NaN fails it. */
#ifndef SPEC_COMPARE_VALUE_H
#define SPEC_COMPARE_VALUE_H

#include "spec/shared.h"

struct compared {
    uint64_t judged, wrong, nonfinite, looser_wrong;
    double worst, squares, looser_squares;
    double looser_miss, largest; /* error where the looser test fails; magnitude expected */
};

SHARED void compared_join(struct compared *t, const struct compared *u) {
    t->judged += u->judged;
    t->wrong += u->wrong;
    t->nonfinite += u->nonfinite;
    t->looser_wrong += u->looser_wrong;
    t->squares += u->squares;
    t->looser_squares += u->looser_squares;
    t->worst = u->worst > t->worst ? u->worst : t->worst;
    t->looser_miss = u->looser_miss > t->looser_miss ? u->looser_miss : t->looser_miss;
    t->largest = u->largest > t->largest ? u->largest : t->largest;
}

/* What is allowed: so many estimates; and how the looser test widens every rounding from the unit
 * of the class to bf16's, the result's own included. Integers have none. */
struct allowance {
    double worst;
    double scale, relative, least;
};

SHARED struct allowance allowance_of(bool real, double unit, double worst) {
    struct allowance a = {worst, 1, 0, 0};
    if (real) {
        a.scale = 0x1p-8 / unit;
        a.relative = 0x1p-8;
        a.least = 0x1p-134 / worst;
    }
    return a;
}

/* How far off an element is, in units of what is allowed and of what the looser test allows. */
struct deviation {
    double error, strict, widened;
};

/* Error over allowance; no error is 0 even where nothing is allowed. */
SHARED double error_ratio(double error, double allowed) {
    return error == 0 ? 0 : allowed > 0 ? error / allowed : INFINITY;
}

SHARED struct deviation deviation_of(const struct allowance *a, double v, double estimate,
                                     double got) {
    struct deviation d;
    d.error = fabs(got - v);
    d.strict = error_ratio(d.error, estimate);
    d.widened = error_ratio(d.error, estimate * a->scale + fabs(v) * a->relative + a->least);
    return d;
}

SHARED void compared_add(struct compared *t, double v, struct deviation d) {
    t->judged++;
    t->squares += d.strict * d.strict;
    t->looser_squares += d.widened * d.widened;
    t->worst = d.strict > t->worst ? d.strict : t->worst;
    t->largest = fabs(v) > t->largest ? fabs(v) : t->largest;
}

SHARED bool compare_finite(struct compared *t, const struct allowance *a, double v, double estimate,
                           double got) {
    struct deviation d = deviation_of(a, v, estimate, got);
    bool ok = d.strict <= a->worst;
    compared_add(t, v, d);
    if (!(d.widened <= a->worst)) {
        t->looser_wrong++;
        t->looser_miss = d.error > t->looser_miss ? d.error : t->looser_miss;
    }
    t->wrong += ok ? 0 : 1;
    return ok;
}

/* True: nothing is wrong with the element. */
SHARED bool compare_one(struct compared *t, const struct allowance *a, double v, double estimate,
                        double got) {
    if (isinf(estimate))
        return true;
    if (isfinite(v) && isfinite(got))
        return compare_finite(t, a, v, estimate, got);
    bool ok = isnan(v) ? isnan(got) : v == got || (isnan(got) && isinf(v) && estimate > 0);
    t->nonfinite += ok ? 0 : 1;
    return ok;
}

/* A truth value is 0 or 1: another byte is wrong, whatever may be uncertain about it. */
SHARED bool compare_truth(struct compared *t, unsigned char byte) {
    if (byte <= 1)
        return true;
    t->wrong++;
    t->looser_wrong++;
    t->looser_miss = INFINITY;
    return false;
}

#endif
