#include "eval/poison.h"

#include "base/parallel.h"
#include "eval/poison_value.h"
#include "spec/data.h"

#include <math.h>
#include <string.h>

struct poisoning {
    enum dtype dtype;
    uint64_t key;
    char *dst;
};

static void fill_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    const struct poisoning *p = ctx;
    size_t item = dtype_info(p->dtype)->bytes;
    char *to = p->dst + (size_t)first * item;
    (void)part;
    for (int64_t i = first; i < last; i++, to += item) {
        uint64_t bits = poison_pattern(p->dtype, p->key, (size_t)i);
        memcpy(to, &bits, item); /* little endian */
    }
}

void poison_fill(enum dtype t, uint64_t key, size_t count, unsigned threads, void *dst) {
    struct poisoning p = {t, key, dst};
    parallel_for(threads, (int64_t)count, fill_piece, &p);
}

/* Element i holds its pattern. Sizes are constants, so that it costs no call. */
static inline bool is_poison(enum dtype t, uint64_t key, size_t i, const char *p, size_t item) {
    uint64_t bits = poison_pattern(t, key, i);
    switch (item) {
    case 1:
        return memcmp(p, &bits, 1) == 0;
    case 2:
        return memcmp(p, &bits, 2) == 0;
    case 4:
        return memcmp(p, &bits, 4) == 0;
    default:
        return memcmp(p, &bits, 8) == 0;
    }
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

static void count_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    struct counting *c = ctx;
    size_t item = dtype_info(c->dtype)->bytes;
    bool integer = dtype_info(c->dtype)->kind == 'i' || dtype_info(c->dtype)->kind == 'u';
    const char *p = c->got + (size_t)first * item;
    for (size_t i = (size_t)first; i < (size_t)last; i++, p += item)
        if (is_poison(c->dtype, c->key, i, p, item) && !(integer && may_be_right(c, p, i)) &&
            !c->found[part]++)
            c->first[part] = i;
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
