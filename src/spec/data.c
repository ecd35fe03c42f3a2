/* The kinds of data.def, element by element.
 *
 * Every value is made from + - * and powers of two over random bits (base/rng.h), so that a device
 * can make the same bits. A kind draws from streams of its own: what one kind shows says nothing
 * about another. Outside the stated kind nothing stays at the ones or zeros that a parameter may
 * state: a kernel that skips a parameter must not pass. */
#include "spec/data.h"

#include "base/rng.h"
#include "spec/bind.h"
#include "spec/convert.h"
#include "spec/reference.h"
#include <math.h>

enum { CHUNK = 256 };

static const char *const names[DATA_COUNT] = {
#define DATA(id, name, what) name,
#include "spec/data.def"
#undef DATA
};

const char *data_name(enum data_kind k) {
    BUG_IF((unsigned)k >= DATA_COUNT);
    return names[k];
}

bool data_find(str name, enum data_kind *out) {
    for (int i = 0; i < DATA_COUNT; i++)
        if (str_is(name, names[i])) {
            *out = (enum data_kind)i;
            return true;
        }
    return false;
}

/* A tensor under one kind. Streams: `value` for the main draw of an element, `choice` for signs
 * and whether, `place` for draws that concern a row or the whole tensor. */
struct source {
    enum data_kind kind;
    enum dtype dtype;
    char type; /* of dtype_info */
    struct dist dist;
    double a, b;      /* of the distribution */
    double magnitude; /* typical, never 0 */
    double factor;    /* of data_scale */
    int64_t count, row;
    struct rng value, choice, place;
    int64_t spot; /* one element that is always special */
    int64_t tile_row, tile_col, tile_rows, tile_cols;
};

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

static struct source source_of(const struct inst *in, const struct data_scale *scale, size_t tensor,
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
    case DIST_ZEROS:
        return 0;
    }
    return 0;
}

/* As stated, but never constant. */
static double varied(const struct source *s, int64_t i) {
    bool constant = s->dist.kind == DIST_ONES || s->dist.kind == DIST_ZEROS ||
                    (s->dist.kind == DIST_UNIFORM && s->a == s->b) ||
                    (s->dist.kind == DIST_NORMAL && s->b == 0);
    return constant ? s->magnitude * (0.5 + rng_unit(s->value, (uint64_t)i)) : as_stated(s, i);
}

static double sign_at(const struct source *s, int64_t i) {
    return rng_u64(s->choice, (uint64_t)i) >> 63 ? -1 : 1;
}

/* Powers of two that large and wide data may reach before data_scale holds them back. */
static int exponent_most(enum dtype t) {
    return t == DTYPE_F16 ? 14 : t == DTYPE_I8 || t == DTYPE_U8 ? 6 : t == DTYPE_BOOL ? 0 : 120;
}

static double wide(const struct source *s, int64_t i) {
    int most = exponent_most(s->dtype) < 40 ? exponent_most(s->dtype) : 40;
    double span = most * s->factor;
    int k = (int)floor((2 * rng_unit(s->value, (uint64_t)i) - 1) * span + 0.5);
    return sign_at(s, i) * s->magnitude * ldexp(1 + rng_unit(s->place, (uint64_t)i + 16), k);
}

static double large(const struct source *s, int64_t i) {
    int k = (int)(exponent_most(s->dtype) * s->factor);
    return sign_at(s, i) * s->magnitude * ldexp(0.5 + 0.5 * rng_unit(s->value, (uint64_t)i), k);
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

/* Seven eighths at most, four bits: sums of them are exact in any order. */
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
    enum { RARE = 1009, SPIKE_EXPONENT = 12 };
    int most = exponent_most(s->dtype) < SPIKE_EXPONENT ? exponent_most(s->dtype) : SPIKE_EXPONENT;
    uint64_t r = rng_u64(s->choice, (uint64_t)i);
    if (i != s->spot && r % RARE != 0)
        return varied(s, i);
    double m =
        s->magnitude * ldexp(1 + rng_unit(s->place, (uint64_t)i + 16), (int)(most * s->factor));
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

/* Integers follow the same kinds where these mean something for them; they stay below 2^30, so that
 * a 32-bit sum or difference of two fits. */
static double whole_value(const struct source *s, int64_t i) {
    double v;
    switch (s->kind) {
    case DATA_SUBNORMAL:
        v = sign_at(s, i) * (double)(rng_u64(s->value, (uint64_t)i) & 1);
        break;
    case DATA_NONFINITE:
        v = varied(s, i);
        break;
    case DATA_CONSTANT:
        v = 8 * constant_row(s, i);
        break;
    default:
        v = real_value(s, i);
    }
    v = s->dist.kind == DIST_RANDINT ? floor(v) : rint(v);
    v = s->type == 'u' ? fabs(v) : v;
    if (s->kind == DATA_STATED)
        return v;
    double lo, hi;
    dtype_limits(s->dtype, &lo, &hi);
    lo = fmax(lo, -0x1p30);
    hi = fmin(hi, 0x1p30);
    return v < lo ? lo : v > hi ? hi : v;
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

void data_fill(const struct inst *in, const struct data_scale *scale, size_t tensor,
               enum data_kind kind, uint64_t seed, int64_t first, int64_t count, void *dst) {
    struct source s = source_of(in, scale, tensor, kind, seed);
    size_t size = dtype_info(s.dtype)->bytes;
    double chunk[CHUNK];
    BUG_IF(!tensor_is_input(&in->task->tensors[tensor]));
    BUG_IF(first < 0 || count < 0 || first > s.count - count);
    for (int64_t at = 0; at < count; at += CHUNK) {
        int64_t n = count - at < CHUNK ? count - at : CHUNK;
        for (int64_t k = 0; k < n; k++) {
            int64_t i = first + at + k;
            chunk[k] = s.type == 'f'   ? real_value(&s, i)
                       : s.type == 'b' ? truth_value(&s, i)
                                       : whole_value(&s, i);
        }
        data_store(s.dtype, chunk, (size_t)n, (char *)dst + (size_t)at * size);
    }
}

/* A small instance stands in for a large one: what pointwise expressions reach does not depend on
 * sizes. Dimensions are cut until few elements remain; where a cut breaks a bound the next is
 * tried, and at last the instance itself is used. */
static const struct inst *sample_of(const struct inst *in, struct arena *a) {
    enum { ELEMENTS_MOST = 1 << 18 };
    const struct task *t = in->task;
    struct binding set[TASK_MAX_DIMS];
    for (int64_t cut = 512; cut >= 8; cut /= 2) {
        size_t n = 0;
        int64_t total = 0;
        struct inst *small;
        for (size_t i = 0; i < t->ndims; i++)
            if (!t->dims[i].derived)
                set[n++] = (struct binding){t->dims[i].name, in->dims[i] < cut ? in->dims[i] : cut};
        if (!task_bind(t, set, n, a, &small, NULL))
            continue;
        for (size_t i = 0; i < t->ntensors; i++)
            total += small->tensors[i].count;
        if (total <= ELEMENTS_MOST)
            return small;
    }
    return in;
}

static bool peak_of(const struct inst *in, const struct data_scale *scale, enum data_kind kind,
                    uint64_t seed, double *peak, struct err *err) {
    const struct task *t = in->task;
    void *inputs[TASK_MAX_TENSORS] = {0};
    struct reference *refs = NULL;
    size_t n = 0;
    bool ok = true;
    for (size_t i = 0; i < t->ntensors && ok; i++) {
        if (!tensor_is_input(&t->tensors[i]))
            continue;
        inputs[i] = mem_try_resize(NULL, in->tensors[i].bytes);
        ok = inputs[i] || err_set(err, ERR_ENV, "no memory for %zu bytes of '%.*s'",
                                  in->tensors[i].bytes, STR_ARG(t->tensors[i].name));
        if (ok)
            data_fill(in, scale, i, kind, seed, 0, in->tensors[i].count, inputs[i]);
    }
    ok = ok && reference_eval(in, (const void *const *)inputs, 1, &refs, &n, peak, err);
    reference_release(refs, n);
    for (size_t i = 0; i < t->ntensors; i++)
        mem_free(inputs[i]);
    return ok;
}

/* fp32 ends at 3.4e38; the rest is room for elements that the sample did not see. */
#define PEAK_MOST 1e37

static bool scale_kind(const struct inst *sample, enum data_kind kind, uint64_t seed,
                       struct data_scale *out, struct err *err) {
    enum { HALVINGS = 8 };
    for (int i = 0; i < HALVINGS; i++) {
        double peak;
        if (!peak_of(sample, out, kind, seed, &peak, err))
            return false;
        if (peak < PEAK_MOST)
            return true;
        out->factor[kind] /= 2;
    }
    out->factor[kind] = 0;
    return true;
}

bool data_scale_find(const struct inst *in, uint64_t seed, struct data_scale *out,
                     struct err *err) {
    static const enum data_kind kinds[] = {DATA_WIDE, DATA_LARGE, DATA_SPIKES};
    struct arena *a = arena_new((size_t)8 << 20);
    const struct inst *sample = sample_of(in, a);
    bool ok = true;
    for (int i = 0; i < DATA_COUNT; i++)
        out->factor[i] = 1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && ok; i++)
        ok = scale_kind(sample, kinds[i], seed, out, err);
    arena_free(a);
    return ok;
}
