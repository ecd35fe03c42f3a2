/* The kinds of data.def.
 *
 * Every value is made from + - * and powers of two over random bits (base/rng.h), so that a device
 * can make the same bits. A kind draws from streams of its own: what one kind shows says nothing
 * about another. Outside the stated kind nothing stays at the ones or zeros that a parameter may
 * state: a kernel that skips a parameter must not pass. */
#include "spec/source.h"

#include "spec/bind.h"
#include "spec/convert.h"
#include <math.h>

static double magnitude_of(const struct source *s) {
    double m = 1;
    if (s->dist.kind == DIST_UNIFORM || s->dist.kind == DIST_RANDINT)
        m = fmax(fabs(s->a), fabs(s->b));
    else if (s->dist.kind == DIST_NORMAL)
        m = fabs(s->a) + fabs(s->b);
    return m > 0 ? m : 1;
}

enum { TILE_SIDE = 16 };

static void place_tile(struct source *s) {
    int64_t rows = s->count / s->row;
    s->tile_rows = rows < TILE_SIDE ? rows : TILE_SIDE;
    s->tile_cols = s->row < TILE_SIDE ? s->row : TILE_SIDE;
    s->tile_row = (int64_t)rng_below(s->place, 1, (uint64_t)(rows - s->tile_rows + 1));
    s->tile_col = (int64_t)rng_below(s->place, 2, (uint64_t)(s->row - s->tile_cols + 1));
}

/* Integers that places are computed from stay where the bounds were proved; what inputs are defined
 * from stays what the definition may expect: a draw of 0 or 1 is never 7. */
static void hold(struct source *s, const struct tensor *t, const struct bound_tensor *b) {
    if (t->indexes && s->type != 'f') {
        s->held = true;
        s->lo = b->lo;
        s->hi = b->hi;
    } else if (t->role == TENSOR_RAND && s->dist.kind == DIST_RANDINT) {
        s->held = true;
        s->lo = (int64_t)s->a;
        s->hi = (int64_t)s->b - 1;
    } else if (t->role == TENSOR_RAND && s->dist.kind == DIST_BERNOULLI) {
        s->type = 'b';
    }
}

struct source source_of(const struct inst *in, const struct data_scale *scale, size_t tensor,
                        enum data_kind kind, uint64_t seed) {
    const struct tensor *t = &in->task->tensors[tensor];
    const struct bound_tensor *b = &in->tensors[tensor];
    struct rng r = rng_sub(rng_stream(seed, t->name), kind);
    struct source s = {.kind = kind,
                       .dtype = t->dtype,
                       .type = dtype_info(t->dtype)->kind,
                       .dist = t->dist,
                       .factor = scale ? scale->factor[kind] : 1,
                       .count = b->count,
                       .row = t->rank ? b->extent[t->rank - 1] : 1,
                       .value = rng_sub(r, 0),
                       .choice = rng_sub(r, 1),
                       .place = rng_sub(r, 2)};
    dist_numbers(in, tensor, &s.a, &s.b);
    s.magnitude = magnitude_of(&s);
    s.spot = (int64_t)rng_below(s.place, 0, (uint64_t)s.count);
    place_tile(&s);
    hold(&s, t, b);
    return s;
}

static double as_stated(const struct source *s, int64_t i) {
    uint64_t at = (uint64_t)i;
    switch (s->dist.kind) {
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

/* As stated, but never constant. */
static double varied(const struct source *s, int64_t i) {
    bool constant = s->dist.kind == DIST_ONES || s->dist.kind == DIST_ZEROS ||
                    (s->dist.kind == DIST_UNIFORM && s->a == s->b) ||
                    (s->dist.kind == DIST_NORMAL && s->b == 0);
    return constant ? s->magnitude * (0.5 + rng_unit(s->value, (uint64_t)i)) : as_stated(s, i);
}

double source_usual(const struct source *s, int64_t i) {
    return varied(s, i);
}

static double sign_at(const struct source *s, int64_t i) {
    return rng_u64(s->choice, (uint64_t)i) >> 63 ? -1 : 1;
}

/* ---- floats ---- */

/* The power of two above everything the type holds; f64 is used in the range of fp32. */
static int exponent_most(enum dtype t) {
    return t == DTYPE_F16 ? 16 : 128;
}

/* A little below the largest number: sums with small numbers must not overflow. */
static double float_most(enum dtype t) {
    return t == DTYPE_F16 ? 6e4 : 3e38;
}

static double wide(const struct source *s, int64_t i) {
    int most = exponent_most(s->dtype) < 40 ? exponent_most(s->dtype) - 2 : 40;
    double span = most * s->factor;
    int k = (int)floor((2 * rng_unit(s->value, (uint64_t)i) - 1) * span + 0.5);
    double m = s->magnitude * ldexp(1 + rng_unit(s->place, (uint64_t)i + 16), k);
    return sign_at(s, i) * fmin(m, float_most(s->dtype));
}

static double large(const struct source *s, int64_t i) {
    int k = (int)(exponent_most(s->dtype) * s->factor);
    double top = fmin(s->magnitude * ldexp(1, k), float_most(s->dtype));
    return sign_at(s, i) * top * (0.5 + 0.5 * rng_unit(s->value, (uint64_t)i));
}

/* A whole number of the smallest steps, with any number of leading zeros. */
static double subnormal(const struct source *s, int64_t i) {
    double step = s->dtype == DTYPE_F16 ? 0x1p-24 : s->dtype == DTYPE_BF16 ? 0x1p-133 : 0x1p-149;
    int bits = s->dtype == DTYPE_F16 ? 10 : s->dtype == DTYPE_BF16 ? 7 : 23;
    uint64_t r = rng_u64(s->value, (uint64_t)i);
    uint64_t k = (r & ((1u << bits) - 1)) >> (r >> 40) % (uint64_t)bits;
    return sign_at(s, i) * (double)k * step;
}

static double one_hot(const struct source *s, int64_t i) {
    uint64_t row = (uint64_t)(i / s->row);
    return (uint64_t)(i % s->row) == rng_below(s->choice, row, (uint64_t)s->row) ? 1 : 0;
}

static double sorted(const struct source *s, int64_t i) {
    double at = ((double)(i % s->row) + rng_unit(s->value, (uint64_t)i)) / (double)s->row;
    return s->magnitude * (2 * at - 1);
}

/* Eighths of at most 15, four bits: sums of them, and of their products, are exact in any order. */
static double constant_row(const struct source *s, int64_t i) {
    uint64_t r = rng_u64(s->value, (uint64_t)(i / s->row));
    double m = (double)(1 + r % 15) / 8;
    return r >> 63 ? -m : m;
}

static bool in_tile(const struct source *s, int64_t i) {
    int64_t row = i / s->row - s->tile_row, col = i % s->row - s->tile_col;
    return row >= 0 && row < s->tile_rows && col >= 0 && col < s->tile_cols;
}

static double tiled(const struct source *s, int64_t i) {
    double m = fabs(varied(s, i));
    bool corner = i / s->row == s->tile_row && i % s->row == s->tile_col;
    return corner ? -m : in_tile(s, i) ? sign_at(s, i) * m : m;
}

static double spiked(const struct source *s, int64_t i) {
    enum { RARE = 1009, SPIKE_EXPONENT = 10 };
    uint64_t r = rng_u64(s->choice, (uint64_t)i);
    if (i != s->spot && r % RARE != 0)
        return varied(s, i);
    double m = s->magnitude *
               ldexp(1 + rng_unit(s->place, (uint64_t)i + 16), (int)(SPIKE_EXPONENT * s->factor));
    m = fmin(m, float_most(s->dtype));
    return r >> 63 ? -m : m;
}

/* NaN, +inf and -inf at three places a third of the tensor apart, and at one in 64 by chance. */
static double nonfinite(const struct source *s, int64_t i) {
    static const double what[3] = {NAN, INFINITY, -INFINITY};
    uint64_t r = rng_u64(s->choice, (uint64_t)i);
    int64_t third = s->count / 3;
    for (int k = 0; k < 3 && third; k++)
        if (i == (s->spot + k * third) % s->count)
            return what[k];
    if (third ? r % 64 == 0 : i == s->spot)
        return what[(r >> 32) % 3];
    return varied(s, i);
}

static double real_value(const struct source *s, int64_t i) {
    switch (s->kind) {
    case DATA_SIGNED:
        return sign_at(s, i) * varied(s, i);
    case DATA_WIDE:
        return wide(s, i);
    case DATA_ZEROS:
        return sign_at(s, i) * 0.0;
    case DATA_SUBNORMAL:
        return subnormal(s, i);
    case DATA_LARGE:
        return large(s, i);
    case DATA_ONEHOT:
        return one_hot(s, i);
    case DATA_SORTED:
        return sorted(s, i);
    case DATA_CONSTANT:
        return constant_row(s, i);
    case DATA_TILE:
        return tiled(s, i);
    case DATA_SPIKES:
        return spiked(s, i);
    case DATA_NONFINITE:
        return nonfinite(s, i);
    default:
        return as_stated(s, i);
    }
}

/* ---- integers and truth values ---- */

/* What an integer may be: its type, as far as fp64 holds it exactly. */
static void whole_limits(const struct source *s, double *lo, double *hi) {
    dtype_limits(s->dtype, lo, hi);
    *lo = fmax(*lo, -0x1p52);
    *hi = fmin(*hi, 0x1p52);
}

/* Magnitudes near 2^(bits·factor); unless data_scale holds back, the limits themselves occur. */
static double whole_large(const struct source *s, int64_t i) {
    double lo, hi;
    whole_limits(s, &lo, &hi);
    if (s->factor == 1 && i == s->spot)
        return hi;
    if (s->factor == 1 && i == (s->spot + 1) % s->count)
        return lo;
    double top = exp2(floor(log2(hi + 1) * s->factor));
    return sign_at(s, i) * floor(top * (0.5 + 0.5 * rng_unit(s->value, (uint64_t)i)));
}

static double whole_wide(const struct source *s, int64_t i) {
    double lo, hi;
    whole_limits(s, &lo, &hi);
    double bits = log2(hi + 1) * s->factor * rng_unit(s->value, (uint64_t)i);
    return sign_at(s, i) * floor(ldexp(1 + rng_unit(s->place, (uint64_t)i + 16), (int)bits) - 0.5);
}

static double whole_kind(const struct source *s, int64_t i) {
    switch (s->kind) {
    case DATA_WIDE:
        return whole_wide(s, i);
    case DATA_LARGE:
        return whole_large(s, i);
    case DATA_SUBNORMAL:
        return sign_at(s, i) * (double)(rng_u64(s->value, (uint64_t)i) & 1);
    case DATA_NONFINITE:
        return varied(s, i);
    case DATA_CONSTANT:
        return 8 * constant_row(s, i);
    default:
        return real_value(s, i);
    }
}

static double whole_value(const struct source *s, int64_t i) {
    double lo, hi, v = whole_kind(s, i);
    v = s->dist.kind == DIST_RANDINT ? floor(v) : rint(v);
    if (s->kind == DATA_STATED)
        return v;
    v = s->type == 'u' ? fabs(v) : v;
    whole_limits(s, &lo, &hi);
    return v < lo ? lo : v > hi ? hi : v;
}

/* Kinds of integers that must stay in a range. */
static double held_value(const struct source *s, int64_t i) {
    uint64_t n = (uint64_t)(s->hi - s->lo) + 1;
    double lo = (double)s->lo, hi = (double)s->hi;
    switch (s->kind) {
    case DATA_STATED:
        return as_stated(s, i);
    case DATA_ZEROS:
        return lo;
    case DATA_LARGE:
        return hi;
    case DATA_ONEHOT:
        return one_hot(s, i) > 0 ? hi : lo;
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

static double truth_value(const struct source *s, int64_t i) {
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
        return one_hot(s, i);
    case DATA_SORTED:
        return 2 * (i % s->row) >= s->row;
    case DATA_CONSTANT:
        return constant_row(s, i) > 0;
    case DATA_TILE:
        return in_tile(s, i) ? (double)(r >> 63) : 1;
    case DATA_SPIKES:
        return i == s->spot ? 1 - as_stated(s, i) : as_stated(s, i);
    default:
        return as_stated(s, i);
    }
}

double source_value(const struct source *s, int64_t i) {
    return s->held          ? held_value(s, i)
           : s->type == 'f' ? real_value(s, i)
           : s->type == 'b' ? truth_value(s, i)
                            : whole_value(s, i);
}
