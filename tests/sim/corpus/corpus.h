/* The corpus: small kernels that run on an H200 (hardware/record.c) and in the simulator
 * (test_corpus.c), from the same PTX and the same inputs.
 *
 * A row is a launch. A kernel's parameters are its tensor maps, its buffers and its integers, in
 * this order. What it leaves in the buffers marked `out` is its result, of which an answer is kept:
 * a digest for each CORPUS_N words, and as many words as there is room for, all of them where
 * results are compared by units in the last place. The answer to an illegal launch is empty. */
#ifndef CORPUS_CORPUS_H
#define CORPUS_CORPUS_H

#include "fill.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define CORPUS_BUFFERS   5u
#define CORPUS_MAPS      3u
#define CORPUS_INTS      12u
#define CORPUS_MAX_WORDS (1u << 17) /* of all results of a row */
#define CORPUS_NAME      48u
#define CORPUS_FILE      "tests/sim/golden/h200.bin"

/* How results are compared: by their bits, or by `ulps` units in the last place of the larger one.
 * NEAR takes a unit of 1 for smaller numbers: errors of sums, and where PTX bounds the error so.
 * UPPER looks at the upper half of a double. NaN is equal to NaN. */
enum corpus_unit {
    UNIT_BITS,
    UNIT_F32,
    UNIT_NEAR_F32,
    UNIT_F16,
    UNIT_NEAR_F16,
    UNIT_BF16,
    UNIT_UPPER_F64
};
struct corpus_compare {
    enum corpus_unit unit;
    uint32_t ulps;
};
#define SAME                                                                                       \
    { UNIT_BITS, 0 }
#define ULPS_F32(n)                                                                                \
    { UNIT_F32, n }
#define NEAR_F32(n)                                                                                \
    { UNIT_NEAR_F32, n }
#define ULPS_F16(n)                                                                                \
    { UNIT_F16, n }
#define NEAR_F16(n)                                                                                \
    { UNIT_NEAR_F16, n }
#define ULPS_BF16(n)                                                                               \
    { UNIT_BF16, n }
#define UPPER_F64(n)                                                                               \
    { UNIT_UPPER_F64, n }

struct corpus_map {
    uint32_t rank;                /* 0: there is none */
    int32_t type;                 /* CUtensorMapDataType */
    uint32_t buffer;              /* the buffer it is of */
    uint32_t extent[5], pitch[5]; /* pitch in bytes, of dimensions 1 and up */
    uint32_t box[5], step[5];
    int32_t swizzle; /* 0 none, 1 32, 2 64, 3 128 bytes */
    int32_t nan;     /* what lies outside reads as NaN */
};

struct corpus_row {
    const char *file; /* under tests/sim, without .ptx */
    const char *kernel;
    const char *name; /* NULL: the kernel's */
    uint32_t grid[3], block;
    uint32_t shared; /* dynamic, bytes */
    bool cooperative;
    bool illegal; /* the kernel ends with an illegal instruction */
    struct corpus_compare compare;
    struct corpus_buffer buffers[CORPUS_BUFFERS];
    struct corpus_map maps[CORPUS_MAPS];
    uint32_t nints;
    int32_t ints[CORPUS_INTS];
};

static inline const char *corpus_name(const struct corpus_row *r) {
    return r->name ? r->name : r->kernel;
}

/* What buffer `b` of a row holds before the launch. */
static inline void corpus_fill(const struct corpus_row *r, uint32_t b, uint32_t *words) {
    uint64_t seed = b;
    for (const char *p = corpus_name(r); *p; p++)
        seed = hw_mix(seed ^ (unsigned char)*p);
    for (uint32_t i = 0; i < r->buffers[b].words; i++)
        words[i] = fill_at(&r->buffers[b], seed, i);
}

struct corpus_answer {
    char name[CORPUS_NAME];
    uint32_t words, ndigests, nsample;
    uint32_t digest[CORPUS_MAX_WORDS / CORPUS_N + 1];
    uint32_t sample[4096];
};

static inline void corpus_answer(const struct corpus_row *r, const uint32_t *words, uint32_t n,
                                 struct corpus_answer *a) {
    uint32_t room = r->compare.unit != UNIT_BITS ? 4096 : n <= 1024 ? 1024 : 256;
    uint32_t step = (n + room - 1) / room;
    memset(a, 0, sizeof *a);
    snprintf(a->name, sizeof a->name, "%s", corpus_name(r));
    a->words = n;
    for (uint32_t i = 0; i < n; i++) {
        if (i % CORPUS_N == 0)
            a->ndigests++;
        uint32_t *d = &a->digest[a->ndigests - 1];
        *d = (uint32_t)hw_mix((uint64_t)*d << 32 | words[i]);
        if (i % step == 0)
            a->sample[a->nsample++] = words[i];
    }
    if (r->compare.unit != UNIT_BITS)
        a->ndigests = 0;
}

/* In the file an answer is its head and the used parts of its arrays. */
#define CORPUS_HEAD offsetof(struct corpus_answer, digest)
static inline bool corpus_answer_read(const char *p, size_t n, struct corpus_answer *a,
                                      size_t *used) {
    if (n < CORPUS_HEAD)
        return false;
    memcpy(a, p, CORPUS_HEAD);
    if (a->ndigests > sizeof a->digest / 4 || a->nsample > sizeof a->sample / 4 ||
        n - CORPUS_HEAD < 4 * (size_t)(a->ndigests + a->nsample))
        return false;
    memcpy(a->digest, p + CORPUS_HEAD, (size_t)4 * a->ndigests);
    memcpy(a->sample, p + CORPUS_HEAD + (size_t)4 * a->ndigests, (size_t)4 * a->nsample);
    *used = CORPUS_HEAD + 4 * (size_t)(a->ndigests + a->nsample);
    return true;
}

/* A float of ebits and mbits as a number of units: neighbours differ by 1, NaN is beyond infinity.
 */
static inline int64_t corpus_order(uint32_t bits, int ebits, int mbits) {
    int64_t magnitude = bits & ((1u << (ebits + mbits)) - 1), inf = ((1LL << ebits) - 1) << mbits;
    if (magnitude > inf)
        return INT64_MAX / 4;
    return bits >> (ebits + mbits) & 1 ? -magnitude : magnitude;
}
static inline bool corpus_within(uint32_t x, uint32_t y, int ebits, int mbits, bool near,
                                 int64_t ulps) {
    int64_t a = corpus_order(x, ebits, mbits), b = corpus_order(y, ebits, mbits);
    int64_t one = ((1LL << (ebits - 1)) - 1) << mbits, inf = ((1LL << ebits) - 1) << mbits;
    if (a == b)
        return true;
    if (llabs(a) >= inf || llabs(b) >= inf) /* the last finite number is next to infinity */
        return llabs(a) <= inf && llabs(b) <= inf && llabs(a - b) <= ulps;
    if (!near || llabs(a) >= one || llabs(b) >= one)
        return llabs(a - b) <= ulps;
    double unit = ldexp(1, -mbits), u = 0, v = 0;
    int bias = (1 << (ebits - 1)) - 1;
    for (int k = 0; k < 2; k++) { /* both below 1: by their difference */
        int64_t m = llabs(k ? b : a), e = m >> mbits, f = m & ((1LL << mbits) - 1);
        double value = e ? ldexp((double)(f + (1LL << mbits)), (int)e - bias - mbits)
                         : ldexp((double)f, 1 - bias - mbits);
        *(k ? &v : &u) = (k ? b : a) < 0 ? -value : value;
    }
    return fabs(u - v) <= (double)ulps * unit;
}

static inline bool corpus_equal(struct corpus_compare c, uint32_t x, uint32_t y, uint32_t place) {
    bool near = c.unit == UNIT_NEAR_F32 || c.unit == UNIT_NEAR_F16;
    if (x == y)
        return true;
    switch (c.unit) {
    case UNIT_BITS:
        return false;
    case UNIT_F32:
    case UNIT_NEAR_F32:
        return corpus_within(x, y, 8, 23, near, c.ulps);
    case UNIT_F16:
    case UNIT_NEAR_F16:
        return corpus_within(x & 0xffff, y & 0xffff, 5, 10, near, c.ulps) &&
               corpus_within(x >> 16, y >> 16, 5, 10, near, c.ulps);
    case UNIT_BF16:
        return corpus_within(x & 0xffff, y & 0xffff, 8, 7, false, c.ulps) &&
               corpus_within(x >> 16, y >> 16, 8, 7, false, c.ulps);
    default: /* 11 bits of exponent and the 20 that are left of the significand */
        return place % 2 == 0 || corpus_within(x, y, 11, 20, false, c.ulps);
    }
}

#endif
