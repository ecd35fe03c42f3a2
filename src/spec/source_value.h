/* The kinds of data.def, element by element: what a tensor with a distribution holds under one
 * kind, and how an assumption makes a value its own. Read by two compilers (spec/shared.h); what
 * only C can compute (logarithms, names, sizes) is in the structs when they arrive here (source.c).
 *
 * Every value is made from + - * / and powers of two over random bits (base/rng.h), so that a
 * device makes the same bits. A kind draws from streams of its own: what one kind shows says
 * nothing about another. Outside the stated kind nothing stays at the ones or zeros that a
 * parameter may state: a kernel that skips a parameter must not pass. */
#ifndef SPEC_SOURCE_VALUE_H
#define SPEC_SOURCE_VALUE_H

#include "base/rng.h"
#include "spec/convert_value.h"
#include "spec/data.h"

/* One tensor under one kind of data. Streams: `value` for the main draw of an element, `choice` for
 * signs and whether, `place` for draws that concern a row or the whole tensor. */
struct source {
    enum data_kind kind;
    enum dtype dtype;
    enum dist_kind dist;
    char type; /* of dtype_info: 'f' 'i' 'u' 'b' */
    bool held; /* in lo … hi under every kind */
    int64_t lo, hi;
    double a, b;      /* of the distribution */
    double magnitude; /* typical, never 0 */
    double factor;    /* of data_scale */
    int64_t count, row;
    struct rng value, choice, place;
    int64_t spot; /* one element that is always special */
    int64_t tile_row, tile_col, tile_rows, tile_cols;
    /* Integers: what one may be (its type, as far as fp64 holds it exactly), the bits of the
     * largest, and the magnitude of the large kind. */
    double whole_lo, whole_hi, whole_bits, whole_top;
};

/* What is assumed of the elements of one tensor. */
struct promise {
    bool any, symmetric;
    bool lo_open, hi_open; /* the end itself is not allowed */
    double lo, hi;
};

SHARED_APART double source_stated(const struct source *s, int64_t i) {
    uint64_t at = (uint64_t)i;
    switch (s->dist) {
    case DIST_UNIFORM:
        return s->a + (s->b - s->a) * rng_unit(s->value, at);
    case DIST_NORMAL:
        return s->a + s->b * rng_normal(s->value, at);
    case DIST_RANDINT:
        return s->a + (double)rng_below(s->value, at, (uint64_t)(s->b - s->a));
    case DIST_BERNOULLI:
        return rng_unit(s->value, at) < s->a ? 1 : 0;
    case DIST_ONES:
        return 1;
    default:
        return 0;
    }
}

/* As stated, but never constant: a finite value around those stated. */
SHARED_APART double source_usual(const struct source *s, int64_t i) {
    bool constant = s->dist == DIST_ONES || s->dist == DIST_ZEROS ||
                    (s->dist == DIST_UNIFORM && s->a == s->b) ||
                    (s->dist == DIST_NORMAL && s->b == 0);
    return constant ? s->magnitude * (0.5 + rng_unit(s->value, (uint64_t)i)) : source_stated(s, i);
}

SHARED double source_sign(const struct source *s, int64_t i) {
    return rng_u64(s->choice, (uint64_t)i) >> 63 ? -1 : 1;
}

/* ---- floats ---- */

/* The power of two above everything the type holds; f64 is used in the range of fp32. */
SHARED int source_exponent_most(enum dtype t) {
    return t == DTYPE_F16 ? 16 : 128;
}

/* A little below the largest number: sums with small numbers must not overflow. */
SHARED double source_float_most(enum dtype t) {
    return t == DTYPE_F16 ? 6e4 : 3e38;
}

SHARED int source_wide_exponent(enum dtype t) {
    return source_exponent_most(t) < 40 ? source_exponent_most(t) - 2 : 40;
}

SHARED double source_wide(const struct source *s, int64_t i) {
    double span = source_wide_exponent(s->dtype) * s->factor;
    int k = (int)floor((2 * rng_unit(s->value, (uint64_t)i) - 1) * span + 0.5);
    double m = s->magnitude * ldexp(1 + rng_unit(s->place, (uint64_t)i + 16), k);
    return source_sign(s, i) * fmin(m, source_float_most(s->dtype));
}

SHARED double source_large_top(const struct source *s) {
    int k = (int)(source_exponent_most(s->dtype) * s->factor);
    return fmin(s->magnitude * ldexp(1.0, k), source_float_most(s->dtype));
}

SHARED double source_large(const struct source *s, int64_t i) {
    return source_sign(s, i) * source_large_top(s) * (0.5 + 0.5 * rng_unit(s->value, (uint64_t)i));
}

SHARED double source_subnormal_step(enum dtype t) {
    return t == DTYPE_F16 ? 0x1p-24 : t == DTYPE_BF16 ? 0x1p-133 : 0x1p-149;
}

SHARED unsigned source_subnormal_bits(enum dtype t) {
    return t == DTYPE_F16 ? 10 : t == DTYPE_BF16 ? 7 : 23;
}

/* A whole number of the smallest steps, with any number of leading zeros. */
SHARED double source_subnormal(const struct source *s, int64_t i) {
    unsigned bits = source_subnormal_bits(s->dtype);
    uint64_t r = rng_u64(s->value, (uint64_t)i);
    uint64_t k = (r & ((1u << bits) - 1)) >> (r >> 40) % bits;
    return source_sign(s, i) * (double)k * source_subnormal_step(s->dtype);
}

SHARED_APART double source_one_hot(const struct source *s, int64_t i) {
    uint64_t row = (uint64_t)(i / s->row);
    return (uint64_t)(i % s->row) == rng_below(s->choice, row, (uint64_t)s->row) ? 1 : 0;
}

SHARED double source_sorted(const struct source *s, int64_t i) {
    double at = ((double)(i % s->row) + rng_unit(s->value, (uint64_t)i)) / (double)s->row;
    return s->magnitude * (2 * at - 1);
}

/* Eighths of at most 15, four bits: sums of them, and of their products, are exact in any order. */
SHARED_APART double source_constant_row(const struct source *s, int64_t i) {
    uint64_t r = rng_u64(s->value, (uint64_t)(i / s->row));
    double m = (double)(1 + r % 15) / 8;
    return r >> 63 ? -m : m;
}

SHARED bool source_in_tile(const struct source *s, int64_t i) {
    int64_t row = i / s->row - s->tile_row, col = i % s->row - s->tile_col;
    return row >= 0 && row < s->tile_rows && col >= 0 && col < s->tile_cols;
}

SHARED_APART double source_tiled(const struct source *s, int64_t i) {
    double m = fabs(source_usual(s, i));
    bool corner = i / s->row == s->tile_row && i % s->row == s->tile_col;
    return corner ? -m : source_in_tile(s, i) ? source_sign(s, i) * m : m;
}

SHARED double source_spiked(const struct source *s, int64_t i) {
    const int rare = 1009, spike_exponent = 10;
    uint64_t r = rng_u64(s->choice, (uint64_t)i);
    if (i != s->spot && r % (uint64_t)rare != 0)
        return source_usual(s, i);
    double m = s->magnitude *
               ldexp(1 + rng_unit(s->place, (uint64_t)i + 16), (int)(spike_exponent * s->factor));
    m = fmin(m, source_float_most(s->dtype));
    return r >> 63 ? -m : m;
}

SHARED double source_odd(uint64_t which) {
    return which == 0 ? NAN : which == 1 ? INFINITY : -INFINITY;
}

/* NaN, +inf and -inf at three places a third of the tensor apart, and at one in 64 by chance. */
SHARED double source_nonfinite(const struct source *s, int64_t i) {
    uint64_t r = rng_u64(s->choice, (uint64_t)i);
    int64_t third = s->count / 3;
    for (int k = 0; k < 3 && third; k++)
        if (i == (s->spot + k * third) % s->count)
            return source_odd((uint64_t)k);
    if (third ? r % 64 == 0 : i == s->spot)
        return source_odd((r >> 32) % 3);
    return source_usual(s, i);
}

SHARED_APART double source_real(const struct source *s, int64_t i) {
    switch (s->kind) {
    case DATA_SIGNED:
        return source_sign(s, i) * source_usual(s, i);
    case DATA_WIDE:
        return source_wide(s, i);
    case DATA_ZEROS:
        return source_sign(s, i) * 0.0;
    case DATA_SUBNORMAL:
        return source_subnormal(s, i);
    case DATA_LARGE:
        return source_large(s, i);
    case DATA_ONEHOT:
        return source_one_hot(s, i);
    case DATA_SORTED:
        return source_sorted(s, i);
    case DATA_CONSTANT:
        return source_constant_row(s, i);
    case DATA_TILE:
        return source_tiled(s, i);
    case DATA_SPIKES:
        return source_spiked(s, i);
    case DATA_NONFINITE:
        return source_nonfinite(s, i);
    default:
        return source_stated(s, i);
    }
}

/* ---- integers and truth values ---- */

/* Magnitudes near 2^(bits·factor); unless data_scale holds back, the limits themselves occur. */
SHARED double source_whole_large(const struct source *s, int64_t i) {
    if (s->factor == 1 && i == s->spot)
        return s->whole_hi;
    if (s->factor == 1 && i == (s->spot + 1) % s->count)
        return s->whole_lo;
    return source_sign(s, i) * floor(s->whole_top * (0.5 + 0.5 * rng_unit(s->value, (uint64_t)i)));
}

SHARED double source_whole_wide(const struct source *s, int64_t i) {
    double bits = s->whole_bits * s->factor * rng_unit(s->value, (uint64_t)i);
    double m = ldexp(1 + rng_unit(s->place, (uint64_t)i + 16), (int)bits);
    return source_sign(s, i) * floor(m - 0.5);
}

SHARED double source_whole_kind(const struct source *s, int64_t i) {
    switch (s->kind) {
    case DATA_WIDE:
        return source_whole_wide(s, i);
    case DATA_LARGE:
        return source_whole_large(s, i);
    case DATA_SUBNORMAL:
        return source_sign(s, i) * (double)(rng_u64(s->value, (uint64_t)i) & 1);
    case DATA_NONFINITE:
        return source_usual(s, i);
    case DATA_CONSTANT:
        return 8 * source_constant_row(s, i);
    default:
        return source_real(s, i);
    }
}

SHARED_APART double source_whole(const struct source *s, int64_t i) {
    double v = source_whole_kind(s, i);
    v = s->dist == DIST_RANDINT ? floor(v) : rint(v);
    if (s->kind == DATA_STATED)
        return v;
    v = s->type == 'u' ? fabs(v) : v;
    return v < s->whole_lo ? s->whole_lo : v > s->whole_hi ? s->whole_hi : v;
}

/* Kinds of integers that must stay in a range. */
SHARED_APART double source_held(const struct source *s, int64_t i) {
    uint64_t n = (uint64_t)(s->hi - s->lo) + 1;
    double lo = (double)s->lo, hi = (double)s->hi;
    switch (s->kind) {
    case DATA_STATED:
        return source_stated(s, i);
    case DATA_ZEROS:
        return lo;
    case DATA_LARGE:
        return hi;
    case DATA_ONEHOT:
        return source_one_hot(s, i) > 0 ? hi : lo;
    case DATA_SORTED:
        return fmin(hi, lo + floor((double)(i % s->row) / (double)s->row * (hi - lo + 1)));
    case DATA_CONSTANT:
        return lo + (double)rng_below(s->value, (uint64_t)(i / s->row), n);
    case DATA_SPIKES:
        return i == s->spot ? hi : lo + (double)rng_below(s->value, (uint64_t)i, n);
    default:
        return lo + (double)rng_below(s->value, (uint64_t)i, n);
    }
}

SHARED_APART double source_truth(const struct source *s, int64_t i) {
    uint64_t r = rng_u64(s->choice, (uint64_t)i);
    switch (s->kind) {
    case DATA_ZEROS:
        return 0;
    case DATA_LARGE:
        return 1;
    case DATA_SIGNED:
    case DATA_WIDE:
    case DATA_SUBNORMAL:
        return (double)(r >> 63);
    case DATA_ONEHOT:
        return source_one_hot(s, i);
    case DATA_SORTED:
        return 2 * (i % s->row) >= s->row;
    case DATA_CONSTANT:
        return source_constant_row(s, i) > 0;
    case DATA_TILE:
        return source_in_tile(s, i) ? (double)(r >> 63) : 1;
    case DATA_SPIKES:
        return i == s->spot ? 1 - source_stated(s, i) : source_stated(s, i);
    default:
        return source_stated(s, i);
    }
}

/* Of a tensor that states a distribution. */
SHARED double source_value(const struct source *s, int64_t i) {
    return s->held          ? source_held(s, i)
           : s->type == 'f' ? source_real(s, i)
           : s->type == 'b' ? source_truth(s, i)
                            : source_whole(s, i);
}

/* ---- as the tensor's type stores it, and as an assumption wants it ---- */

/* One NaN for all: processors differ in the one they make. */
SHARED_APART double source_stored(const struct source *s, char type, double v) {
    return type != 'f' ? v : isnan(v) ? NAN : round_to(s->dtype, v);
}

SHARED bool promise_allows(const struct promise *p, double v) {
    return (p->lo_open ? v > p->lo : v >= p->lo) && (p->hi_open ? v < p->hi : v <= p->hi);
}

/* Folded at the ends of the range, like a ray between mirrors. */
SHARED_APART double promise_folds(const struct promise *p, double v) {
    double width = p->hi - p->lo;
    if (isinf(p->hi))
        return p->lo + fabs(v - p->lo);
    if (isinf(p->lo))
        return p->hi - fabs(v - p->hi);
    double at = width > 0 ? fmod(fabs(v - p->lo), 2 * width) : 0;
    return p->lo + (at > width ? 2 * width - at : at);
}

/* The next number of the tensor's type, upwards or downwards. */
SHARED double source_next(const struct source *s, char type, double v, double direction) {
    double step = type == 'f' ? 2 * round_half_ulp(s->dtype, v) : 1;
    return source_stored(s, type, v + direction * (step > 0 ? step : 0x1p-1074));
}

/* The value v of element i, made to keep the promise; `type` is that of the tensor's dtype. */
SHARED_APART double promise_keeps(const struct promise *p, const struct source *s, char type,
                                  double v, int64_t i) {
    if (promise_allows(p, source_stored(s, type, v)))
        return v;
    if (!isfinite(v))
        v = source_usual(s, i);
    v = source_stored(s, type, promise_allows(p, v) ? v : promise_folds(p, v));
    if (promise_allows(p, v))
        return v;
    return v <= p->lo || isinf(p->hi) ? source_next(s, type, p->lo, 1)
                                      : source_next(s, type, p->hi, -1);
}

/* The element across the diagonal of the last two dimensions, n each, where i lies below it. */
SHARED_APART int64_t promise_mirrors(int64_t i, int64_t n) {
    int64_t col = i % n, row = i / n % n;
    return row > col ? i + (col - row) * n + (row - col) : i;
}

#endif
