/* Patterns of floats are made and looked for a stretch at a time, in vectors: every run of every
 * candidate has its outputs poisoned. A stretch that holds any is looked at again one by one. */
#include "base/wide.h"

#include "eval/poison.h"

#include "base/parallel.h"
#include "eval/poison_value.h"
#include "spec/data.h"

#include <math.h>
#include <string.h>

enum { STRETCH = 1024 };

/* The patterns of n elements from `first` on; how many of n elements are their own pattern. */
#define STRETCHES(name, type, dtype)                                                               \
    WIDE static void name##_patterns(uint64_t key, size_t first, size_t n, type *restrict out) {   \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i] = (type)poison_pattern(dtype, key, first + i);                                  \
    }                                                                                              \
    WIDE static size_t name##_equal(const type *a, const type *b, size_t n) {                      \
        type equal = 0; /* as many as a stretch has */                                             \
        for (size_t i = 0; i < n; i++)                                                             \
            equal += a[i] == b[i] ? 1 : 0;                                                         \
        return equal;                                                                              \
    }                                                                                              \
    static size_t name##_held(uint64_t key, size_t first, size_t n, const void *got) {             \
        type expected[STRETCH];                                                                    \
        name##_patterns(key, first, n, expected);                                                  \
        return name##_equal(expected, got, n);                                                     \
    }

STRETCHES(f32, uint32_t, DTYPE_F32)
STRETCHES(f16, uint16_t, DTYPE_F16)
STRETCHES(bf16, uint16_t, DTYPE_BF16)

static void fill_stretch(enum dtype t, uint64_t key, size_t first, size_t n, char *to) {
    size_t item = dtype_info(t)->bytes;
    if (t == DTYPE_F32)
        f32_patterns(key, first, n, (uint32_t *)to);
    else if (t == DTYPE_F16)
        f16_patterns(key, first, n, (uint16_t *)to);
    else if (t == DTYPE_BF16)
        bf16_patterns(key, first, n, (uint16_t *)to);
    else
        for (size_t i = 0; i < n; i++) {
            uint64_t bits = poison_pattern(t, key, first + i);
            memcpy(to + i * item, &bits, item); /* little endian */
        }
}

/* False: none of a stretch is. */
static bool any_poison(enum dtype t, uint64_t key, size_t first, size_t n, const char *got) {
    if (t == DTYPE_F32)
        return f32_held(key, first, n, got);
    if (t == DTYPE_F16)
        return f16_held(key, first, n, got);
    return t != DTYPE_BF16 || bf16_held(key, first, n, got);
}

struct poisoning {
    enum dtype dtype;
    uint64_t key;
    char *dst;
};

static void fill_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    const struct poisoning *p = ctx;
    size_t item = dtype_info(p->dtype)->bytes;
    (void)part;
    for (int64_t at = first; at < last; at += STRETCH) {
        size_t n = last - at < STRETCH ? (size_t)(last - at) : STRETCH;
        fill_stretch(p->dtype, p->key, (size_t)at, n, p->dst + (size_t)at * item);
    }
}

void poison_fill(enum dtype t, uint64_t key, size_t count, unsigned threads, void *dst) {
    struct poisoning p = {t, key, dst};
    parallel_for(threads, (int64_t)count, fill_piece, &p);
}

/* Element i holds its pattern. */
static bool is_poison(enum dtype t, uint64_t key, size_t i, const char *p, size_t item) {
    uint64_t bits = poison_pattern(t, key, i);
    return memcmp(p, &bits, item) == 0;
}

struct counting {
    enum dtype dtype;
    uint64_t key;
    const char *got;
    const double *expected, *estimate;
    double worst;
    uint64_t found[PARALLEL_MOST];
    size_t first[PARALLEL_MOST];
};

/* An integer that is as good as right may have been written. */
static bool may_be_right(const struct counting *c, const char *p, size_t i) {
    double value;
    data_load(c->dtype, p, 1, &value);
    return value == c->expected[i] || isinf(c->estimate[i]) ||
           fabs(value - c->expected[i]) <= c->worst * c->estimate[i];
}

static void count_stretch(struct counting *c, unsigned part, size_t first, size_t n) {
    size_t item = dtype_info(c->dtype)->bytes;
    bool integer = dtype_info(c->dtype)->kind == 'i' || dtype_info(c->dtype)->kind == 'u';
    const char *p = c->got + first * item;
    if (!any_poison(c->dtype, c->key, first, n, p))
        return;
    for (size_t i = first; i < first + n; i++, p += item)
        if (is_poison(c->dtype, c->key, i, p, item) && !(integer && may_be_right(c, p, i)) &&
            !c->found[part]++)
            c->first[part] = i;
}

static void count_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    for (int64_t at = first; at < last; at += STRETCH)
        count_stretch(ctx, part, (size_t)at, last - at < STRETCH ? (size_t)(last - at) : STRETCH);
}

uint64_t poison_count(enum dtype t, uint64_t key, const void *got, const double *expected,
                      const double *estimate, double worst, size_t count, unsigned threads,
                      size_t *first) {
    struct counting c = {t, key, got, expected, estimate, worst, {0}, {0}};
    uint64_t found = 0;
    unsigned parts = parallel_for(threads, (int64_t)count, count_piece, &c);
    for (unsigned i = parts; i-- > 0;) {
        found += c.found[i];
        if (c.found[i])
            *first = c.first[i];
    }
    return found;
}

void canary_fill(uint64_t key, void *dst, size_t bytes) {
    char *p = dst;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t bits = poison_mix(key, i);
        memcpy(p + i, &bits, bytes - i < 8 ? bytes - i : 8);
    }
}

bool canary_holds(uint64_t key, const void *p, size_t bytes, size_t *first) {
    const char *c = p;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t bits = poison_mix(key, i);
        size_t n = bytes - i < 8 ? bytes - i : 8;
        if (memcmp(c + i, &bits, n) == 0)
            continue;
        *first = i;
        while (c[*first] == ((const char *)&bits)[*first - i])
            ++*first;
        return false;
    }
    return true;
}
