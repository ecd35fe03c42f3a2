/* The kinds of data.def, element by element: what a tensor with a distribution holds under one
 * kind, and how an assumption makes a value its own. Read by two compilers (spec/shared.h); what
 * only C can compute (logarithms, names, sizes) is in the structs when they arrive here (data.c).
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

enum { SOURCE_LITERALS = 54 };

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
    double power;     /* the power of two that is as large or next below */
    double factor;    /* of data_scale */
    int64_t count, row;
    int offset_bits; /* powers of two between the mean and the spread of the offset kind */
    int64_t group;   /* elements that share an exponent, or a kind: a row, or a slice */
    bool mixed;      /* groups are of several kinds */
    struct rng value, choice, place;
    int64_t spot; /* one element that is always special */
    int64_t tile_row, tile_col, tile_rows, tile_cols;
    bool largest; /* the type's largest number occurs in the large kind */
    int end;      /* of data_scale */
    /* Numbers of the task's statements as the type holds them, with their neighbours; `between` is
     * the magnitude of what else the literals kind has. */
    double literal[SOURCE_LITERALS];
    int64_t nliterals;
    double between;
    bool scalar;    /* it has so few elements that every one of them is a literal */
    int64_t counts; /* the largest of its small whole numbers */
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

/* One draw for a row or a group: its kind, its mean, its exponent. The lowest three bits say which
 * kind it is where kinds are mixed. */
SHARED uint64_t source_row_draw(const struct source *s, int64_t row) {
    return rng_u64(s->place, ~(uint64_t)row);
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

/* Rare elements, two at the least, are the largest number there is. */
SHARED bool source_is_largest(const struct source *s, int64_t i) {
    const int rare = 1009;
    return s->largest && (i == s->spot || i == (s->spot + 1) % s->count ||
                          rng_u64(s->choice, (uint64_t)i) % (uint64_t)rare == 0);
}

SHARED double source_largest(const struct source *s, int64_t i) {
    double most = format_most(s->dtype == DTYPE_F64 ? DTYPE_F32 : s->dtype);
    return i == s->spot ? most : i == (s->spot + 1) % s->count ? -most : source_sign(s, i) * most;
}

SHARED double source_large(const struct source *s, int64_t i) {
    if (source_is_largest(s, i))
        return source_largest(s, i);
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

/* Every other row begins in the middle: it ascends, falls once and ascends again. */
SHARED int64_t source_sorted_start(const struct source *s, int64_t row) {
    uint64_t r = source_row_draw(s, row);
    return r >> 63 ? (int64_t)((r >> 8 & 0xffffffff) % (uint64_t)s->row) : 0;
}

SHARED double source_sorted(const struct source *s, int64_t i) {
    int64_t place = (i % s->row + source_sorted_start(s, i / s->row)) % s->row;
    double at = ((double)place + rng_unit(s->value, (uint64_t)i)) / (double)s->row;
    return s->magnitude * (2 * at - 1);
}

/* Where a row that is constant else has another number; -1: it is constant throughout. */
SHARED int64_t source_odd_place(const struct source *s, int64_t row) {
    uint64_t r = source_row_draw(s, row);
    bool odd = s->count > s->row && r >> 62 == 0;
    return odd ? (int64_t)((r >> 20 & 0xffffffff) % (uint64_t)s->row) : -1;
}

/* Eighths of at most 15, four bits: sums of them, and of their products, are exact in any order. */
SHARED double source_eighths(uint64_t r) {
    double m = (double)(1 + r % 15) / 8;
    return r >> 63 ? -m : m;
}

SHARED_APART double source_constant_row(const struct source *s, int64_t i) {
    int64_t row = i / s->row;
    bool odd = source_odd_place(s, row) == i % s->row;
    return source_eighths(odd ? rng_u64(s->choice, (uint64_t)row)
                              : rng_u64(s->value, (uint64_t)row));
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

/* Some rows of several have a single element that stands out, by 10 to 14 times the magnitude: so
 * little that the exponentials of all the others together still count. */
SHARED bool source_peak_row(const struct source *s, int64_t row) {
    return s->count > s->row && source_row_draw(s, row) >> 62 == 0;
}

SHARED int64_t source_peak_place(const struct source *s, int64_t row) {
    return (int64_t)((source_row_draw(s, row) >> 20 & 0xffffffff) % (uint64_t)s->row);
}

SHARED double source_peak(const struct source *s, int64_t i) {
    uint64_t r = source_row_draw(s, i / s->row);
    double height = 10 + 4 * ((double)(r >> 4 & 0xffff) * 0x1p-16);
    if (i % s->row != source_peak_place(s, i / s->row))
        return source_usual(s, i);
    return s->magnitude * fmin(height, ldexp(1.0, (int)(10 * s->factor)));
}

SHARED_APART double source_spiked(const struct source *s, int64_t i) {
    const int rare = 1009, spike_exponent = 10;
    uint64_t r = rng_u64(s->choice, (uint64_t)i);
    if (i != s->spot && source_peak_row(s, i / s->row))
        return source_peak(s, i);
    if (i != s->spot && r % (uint64_t)rare != 0)
        return source_usual(s, i);
    double m = s->magnitude *
               ldexp(1 + rng_unit(s->place, (uint64_t)i + 16), (int)(spike_exponent * s->factor));
    m = fmin(m, source_float_most(s->dtype));
    return r >> 63 ? -m : m;
}

/* A quiet NaN of either sign; every other one has a payload that shows in every type. */
SHARED double source_nan(uint64_t r) {
    const uint64_t sign = (uint64_t)1 << 63, payload = ((uint64_t)1 << 51) - 1;
    return double_of_bits((uint64_t)0x7ff8 << 48 | (r & sign) | (r >> 62 & 1 ? r & payload : 0));
}

SHARED double source_odd(uint64_t which, uint64_t r) {
    return which == 0 ? source_nan(r) : which == 1 ? INFINITY : -INFINITY;
}

/* Where nothing but NaN is: one row in 16, unless it is the only one, and one in 64 of the aligned
 * runs of neighbours that a thread or a vector may hold. */
enum { NAN_RUN = 8 };

SHARED bool source_nan_row(const struct source *s, int64_t row) {
    return s->count > s->row && source_row_draw(s, row) % 16 == 0;
}

SHARED bool source_nan_run(const struct source *s, int64_t run) {
    return rng_u64(s->place, (uint64_t)run + 16) % 64 == 0;
}

/* Every other row has a single special element, anywhere: in a long row what is far along it would
 * never be the first to be met else. -1: this is no such row. */
SHARED int64_t source_lone_place(const struct source *s, int64_t row) {
    uint64_t r = source_row_draw(s, row);
    bool lone = r >> 63 && !source_nan_row(s, row);
    return lone ? (int64_t)((r >> 20 & 0xffffffff) % (uint64_t)s->row) : -1;
}

/* NaN, +inf and -inf at three places a third of the tensor apart, and at one in 64 by chance, but
 * for rows that have a single one. */
SHARED_APART double source_nonfinite(const struct source *s, int64_t i) {
    uint64_t r = rng_u64(s->choice, (uint64_t)i);
    int64_t third = s->count / 3, lone = third ? source_lone_place(s, i / s->row) : -1;
    for (int k = 0; k < 3 && third; k++)
        if (i == (s->spot + k * third) % s->count)
            return source_odd((uint64_t)k, r);
    if (lone >= 0)
        return i % s->row == lone ? source_odd((r >> 32) % 3, r) : source_usual(s, i);
    if (third && (source_nan_row(s, i / s->row) || source_nan_run(s, i / NAN_RUN)))
        return source_nan(r);
    if (third ? r % 64 == 0 : i == s->spot)
        return source_odd((r >> 32) % 3, r);
    return source_usual(s, i);
}

/* The draw of a group where a size follows from it, which may be held at the upper or the lower
 * end. */
SHARED uint64_t source_size_draw(const struct source *s, int64_t group) {
    const uint64_t all = ~(uint64_t)0, sign = 8;
    if (s->end == 0)
        return source_row_draw(s, group);
    return s->end > 0 ? all - sign : s->kind == DATA_FAR ? 0 : all;
}

SHARED double source_row_unit(uint64_t r) {
    return (double)(r >> 11) * 0x1p-53;
}

/* Sums of squares lose the spread beside such a mean; sums of differences from it do not. Means of
 * rows differ by no more than the spread, so that any part of the tensor is like that; only where
 * kinds are mixed each group has a mean of its own. */
SHARED double source_offset_mean(const struct source *s, int64_t row) {
    double shift = 2 * source_row_unit(source_row_draw(s, row)) - 1;
    uint64_t r = source_size_draw(s, s->mixed ? row * s->row / s->group : s->count);
    int power = (int)(s->offset_bits * s->factor);
    double m = ldexp(s->magnitude * (0.75 + 0.5 * source_row_unit(r)), power);
    m = fmin(m, 0.5 * source_float_most(s->dtype));
    m = m + m * (shift * power_of_two(-s->offset_bits));
    return r >> 3 & 1 ? -m : m;
}

SHARED double source_offset(const struct source *s, int64_t i) {
    double mean = source_offset_mean(s, i / s->row);
    double at = 2 * rng_unit(s->value, (uint64_t)i) - 1;
    return mean + mean * (at * power_of_two(-s->offset_bits));
}

/* Elements that share an exponent: a group, or a piece of the only one. */
SHARED int64_t source_far_group(const struct source *s) {
    return s->count > s->group ? s->group : 32;
}

SHARED double source_far_power(const struct source *s, int64_t group) {
    double span = (source_exponent_most(s->dtype) - 2) * s->factor;
    double at = 2 * source_row_unit(source_size_draw(s, group)) - 1;
    return power_of_two((int)floor(at * span + 0.5));
}

/* One element in eight is the power itself: what works on exponents may be wrong there alone. */
SHARED bool source_far_exact(uint64_t choice) {
    return (choice >> 8) % 8 == 0;
}

SHARED double source_far(const struct source *s, int64_t i) {
    double m = s->magnitude * (1 + rng_unit(s->value, (uint64_t)i));
    m = source_far_exact(rng_u64(s->choice, (uint64_t)i)) ? s->power : m;
    m = m * source_far_power(s, i / source_far_group(s));
    return source_sign(s, i) * fmin(m, source_float_most(s->dtype));
}

/* Some rows of several have whole numbers alone. */
SHARED bool source_counts_row(const struct source *s, int64_t row) {
    return s->count > s->row && (source_row_draw(s, row) >> 8) % 4 == 0;
}

/* The largest of them: in many of these rows so small that few different numbers are left, and a
 * kernel that takes some equal elements for a sign that all are equal is seen. */
SHARED uint64_t source_counts_most(const struct source *s, int64_t row) {
    uint64_t r = source_row_draw(s, row), most = (uint64_t)s->counts;
    uint64_t one = (r >> 16) % 8, two = (r >> 24) % 8;
    most = source_counts_row(s, row) ? most >> (one > two ? one : two) : most;
    return most > 0 ? most : 1;
}

/* What rows of whole numbers are beside: the row before once more, pairs of opposites, one number
 * with changing signs, or the same from both ends. No draws of single elements come out like that.
 */
enum { PATTERN_NONE, PATTERN_REPEATED, PATTERN_OPPOSITES, PATTERN_ALTERNATING, PATTERN_MIRRORED };

SHARED int source_row_pattern(const struct source *s, int64_t row) {
    uint64_t r = (source_row_draw(s, row) >> 32) % 8;
    if (!source_counts_row(s, row) || r > PATTERN_MIRRORED)
        return PATTERN_NONE;
    return r > 1 ? (int)r : row > 0 ? PATTERN_REPEATED : PATTERN_NONE;
}

/* Half of the elements are literals or next to one; of the others half are small whole numbers, and
 * the rest lies between the literals or is usual. */
SHARED_APART double source_literal_drawn(const struct source *s, int64_t i) {
    uint64_t r = rng_u64(s->choice, (uint64_t)i);
    if (s->scalar)
        return s->literal[rng_below(s->value, (uint64_t)i, (uint64_t)s->nliterals)];
    if (source_counts_row(s, i / s->row) || (r & 5) == 4)
        return source_sign(s, i) *
               (double)(1 + rng_below(s->value, (uint64_t)i, source_counts_most(s, i / s->row)));
    if (r & 1)
        return s->literal[rng_below(s->value, (uint64_t)i, (uint64_t)s->nliterals)];
    if (r & 2)
        return s->between * (2 * rng_unit(s->value, (uint64_t)i) - 1);
    return source_sign(s, i) * source_usual(s, i);
}

SHARED_APART double source_literal(const struct source *s, int64_t i) {
    int64_t col = i % s->row, last = s->row - 1;
    switch (s->scalar ? PATTERN_NONE : source_row_pattern(s, i / s->row)) {
    case PATTERN_REPEATED:
        return source_literal_drawn(s, i - s->row);
    case PATTERN_OPPOSITES:
        return (col % 2 ? -1 : 1) * source_literal_drawn(s, i - col % 2);
    case PATTERN_ALTERNATING:
        return (col % 2 ? -1 : 1) * source_literal_drawn(s, i - col);
    case PATTERN_MIRRORED:
        return source_literal_drawn(s, i - col + (col < last - col ? col : last - col));
    default:
        return source_literal_drawn(s, i);
    }
}

/* What infinities a row has; where there is but one row, it is not all infinite. */
enum {
    INFINITE_PLUS,
    INFINITE_MINUS,
    INFINITE_BOTH,
    INFINITE_STRETCH,
    INFINITE_NONE,
    INFINITE_ALL
};

SHARED int source_infinite_row(const struct source *s, int64_t row) {
    uint64_t r = source_row_draw(s, row) % (s->count > s->row ? 16 : 14);
    return r < 12 ? (int)(r / 3) : r < 14 ? INFINITE_NONE : INFINITE_ALL;
}

/* A stretch of a row, whole tiles of it where the row is long: at its beginning, at its end, or
 * between two places. */
SHARED bool source_in_stretch(const struct source *s, uint64_t draw, int64_t column) {
    uint64_t row = (uint64_t)s->row, at = (uint64_t)column, one = (draw >> 8 & 0xffffff) % row,
             two = (draw >> 32 & 0xffffff) % row;
    uint64_t lo = one < two ? one : two, hi = one < two ? two : one;
    uint64_t which = (draw >> 60) % 4;
    return which < 2 ? at < one : which == 2 ? at >= one : at >= lo && at < hi;
}

SHARED double source_row_infinity(uint64_t draw) {
    return draw >> 57 & 7 ? -INFINITY : INFINITY;
}

/* One element in 64, and one at the least. Whole rows and stretches are mostly negative: what a
 * mask leaves out of a softmax. */
SHARED_APART double source_infinite(const struct source *s, int64_t i) {
    int row = source_infinite_row(s, i / s->row);
    uint64_t r = rng_u64(s->choice, (uint64_t)i);
    uint64_t draw = source_row_draw(s, i / s->row);
    if (row == INFINITE_ALL || (row == INFINITE_STRETCH && source_in_stretch(s, draw, i % s->row)))
        return source_row_infinity(draw);
    if (i != s->spot && (r % 64 != 0 || row == INFINITE_NONE))
        return source_usual(s, i);
    return row == INFINITE_PLUS || (row != INFINITE_MINUS && r >> 63) ? INFINITY : -INFINITY;
}

/* The kind of an element's group. */
SHARED enum data_kind source_kind_at(const struct source *s, int64_t i) {
    if (!s->mixed)
        return s->kind;
    switch (source_row_draw(s, i / s->group) & 7) {
    case 0:
        return DATA_ZEROS;
    case 1:
        return DATA_ONEHOT;
    case 2:
        return DATA_SORTED;
    case 3:
        return DATA_CONSTANT;
    case 4:
        return DATA_OFFSET;
    case 5:
        return DATA_LITERALS;
    case 6:
        return DATA_FAR;
    default:
        return DATA_SIGNED;
    }
}

SHARED_APART double source_real(const struct source *s, int64_t i) {
    switch (source_kind_at(s, i)) {
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
    case DATA_OFFSET:
        return source_offset(s, i);
    case DATA_LITERALS:
        return source_literal(s, i);
    case DATA_FAR:
        return source_far(s, i);
    case DATA_INFINITE:
        return source_infinite(s, i);
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
    uint64_t r = source_row_draw(s, i / s->row);
    if (r & 1) /* long sums of them reach what no random signs do */
        return (r & 2 ? -1 : 1) * fmin(floor(s->whole_top), s->whole_hi);
    return source_sign(s, i) * floor(s->whole_top * (0.5 + 0.5 * rng_unit(s->value, (uint64_t)i)));
}

SHARED double source_whole_wide(const struct source *s, int64_t i) {
    double bits = s->whole_bits * s->factor * rng_unit(s->value, (uint64_t)i);
    double m = ldexp(1 + rng_unit(s->place, (uint64_t)i + 16), (int)bits);
    return source_sign(s, i) * floor(m - 0.5);
}

/* At most half of the largest number, and a spread of a few. */
SHARED double source_whole_offset(const struct source *s, int64_t i) {
    double mean = source_offset_mean(s, i / s->row), most = 0.5 * s->whole_hi;
    double m = fmin(fabs(mean), most);
    double spread = fmax(3.0, m * power_of_two(-s->offset_bits));
    double v = m + spread * (2 * rng_unit(s->value, (uint64_t)i) - 1);
    return mean < 0 ? -v : v;
}

SHARED double source_whole_far(const struct source *s, int64_t i) {
    uint64_t r = source_size_draw(s, i / source_far_group(s));
    double m = ldexp(1 + rng_unit(s->value, (uint64_t)i),
                     (int)(s->whole_bits * s->factor * source_row_unit(r)));
    return source_sign(s, i) * floor(m - 0.5);
}

SHARED double source_whole_kind(const struct source *s, int64_t i) {
    switch (source_kind_at(s, i)) {
    case DATA_WIDE:
        return source_whole_wide(s, i);
    case DATA_LARGE:
        return source_whole_large(s, i);
    case DATA_SUBNORMAL:
        return source_sign(s, i) * (double)(rng_u64(s->value, (uint64_t)i) & 1);
    case DATA_OFFSET:
        return source_whole_offset(s, i);
    case DATA_FAR:
        return source_whole_far(s, i);
    case DATA_INFINITE:
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

/* Places of n: over all of them from the first to the last; or, in every other row, one after the
 * other from anywhere, but for one element. */
SHARED double source_ascending(const struct source *s, int64_t i, uint64_t n) {
    uint64_t r = source_row_draw(s, i / s->row), at = (uint64_t)(i % s->row);
    if (r >> 63 == 0)
        return fmin((double)(n - 1), floor((double)at / (double)s->row * (double)n));
    if (at == (r >> 8 & 0xffffff) % (uint64_t)s->row)
        return (double)rng_below(s->value, (uint64_t)i, n);
    return (double)((r % n + at) % n);
}

/* Kinds of integers that must stay in a range. */
SHARED_APART double source_held(const struct source *s, int64_t i) {
    uint64_t n = (uint64_t)(s->hi - s->lo) + 1;
    double lo = (double)s->lo, hi = (double)s->hi;
    switch (source_kind_at(s, i)) {
    case DATA_STATED:
        return source_stated(s, i);
    case DATA_ZEROS:
        return lo;
    case DATA_LARGE:
        return hi;
    case DATA_ONEHOT:
        return source_one_hot(s, i) > 0 ? hi : lo;
    case DATA_SORTED:
        return lo + source_ascending(s, i, n);
    case DATA_CONSTANT:
        return lo + (double)rng_below(s->value, (uint64_t)(i / s->row), n);
    case DATA_OFFSET: /* near one place */
        return fmin(hi, lo + (double)(rng_below(s->place, ~(uint64_t)(i / s->row), n) +
                                      rng_below(s->value, (uint64_t)i, 3)));
    case DATA_SPIKES:
        return i == s->spot ? hi : lo + (double)rng_below(s->value, (uint64_t)i, n);
    default:
        return lo + (double)rng_below(s->value, (uint64_t)i, n);
    }
}

SHARED_APART double source_truth(const struct source *s, int64_t i) {
    uint64_t r = rng_u64(s->choice, (uint64_t)i);
    switch (source_kind_at(s, i)) {
    case DATA_ZEROS:
        return 0;
    case DATA_LARGE:
        return 1;
    case DATA_SIGNED:
    case DATA_WIDE:
    case DATA_SUBNORMAL:
    case DATA_LITERALS:
        return (double)(r >> 63);
    case DATA_ONEHOT:
        return source_one_hot(s, i);
    case DATA_SORTED:
        return (i % s->row >= source_sorted_start(s, i / s->row)) !=
               (source_row_draw(s, i / s->row) >> 62 & 1);
    case DATA_CONSTANT:
        return source_constant_row(s, i) > 0;
    case DATA_OFFSET:
        return r >> 60 != 0;
    case DATA_FAR:
        return (double)(source_row_draw(s, i / source_far_group(s)) >> 63);
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

/* What an expression gave: one NaN for all, since processors differ in the one they make. */
SHARED double source_computed(double v) {
    return isnan(v) ? NAN : v;
}

/* NaN stays as it was drawn; what is stored keeps its sign and the upper bits of its payload. */
SHARED_APART double source_stored(const struct source *s, char type, double v) {
    return type != 'f' ? v : isnan(v) ? v : round_to(s->dtype, v);
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
