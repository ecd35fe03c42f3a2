/* Contents of the corpus's buffers: functions of a seed and a place, for the GPU and for the
 * simulator. Types and distributions are those of hardware/inputs.h. */
#ifndef CORPUS_FILL_H
#define CORPUS_FILL_H

#include "../golden/input.h"
#include "../hardware/inputs.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CORPUS_N GOLDEN_N

enum corpus_fill {
    FILL_POISON,  /* what an output holds before the kernel: a5 */
    FILL_ZERO,    /* words of 0 */
    FILL_INDEX,   /* words 0, 1, 2 … */
    FILL_NUMBERS, /* halves 0, 1, 2 … */
    FILL_CORNERS, /* CORPUS_N words of each of three operands (golden/input.h) */
    FILL_ANGLES,  /* f32 from -3 to 3 */
    FILL_SMALL,   /* integers from -8 to 7, as the type's numbers: sums of products are exact */
    FILL_VALUES,  /* the type in one distribution */
    FILL_DISTS,   /* the type, a sixth of the buffer in each distribution */
    FILL_HIGH,    /* s32, halves of the buffer: any bits, near the ends */
};

/* -8 to 7 as a number of the format. */
static inline uint64_t fill_small(uint64_t r, int ebits, int mbits) {
    int v = (int)(r >> 20 & 15) - 8, m = v < 0 ? -v : v, e = 0;
    if (!m)
        return 0;
    while (m >> (e + 1))
        e++;
    uint64_t fraction = (uint64_t)(m - (1 << e)) << mbits >> e;
    return (uint64_t)(v < 0) << (ebits + mbits) | (uint64_t)(e + (1 << (ebits - 1)) - 1) << mbits |
           fraction;
}

static inline uint32_t fill_small_word(enum hw_type t, uint64_t r) {
    switch (t) {
    case HW_F16:
        return (uint32_t)(fill_small(r, 5, 10) | fill_small(hw_mix(r), 5, 10) << 16);
    case HW_BF16:
        return (uint32_t)(fill_small(r, 8, 7) | fill_small(hw_mix(r), 8, 7) << 16);
    case HW_F32:
    case HW_TF32:
        return (uint32_t)fill_small(r, 8, 23);
    case HW_E4M3:
        return (uint32_t)(fill_small(r, 4, 3) * 0x01010101u);
    default:
        return (uint32_t)(r >> 20 & 15) - 8;
    }
}

/* Word `i` of a buffer of numbers; a double is two of them, the low one first. */
static inline uint32_t fill_value(uint64_t seed, enum hw_type t, enum hw_dist dist, uint32_t i) {
    if (t != HW_F64)
        return hw_word(seed, t, dist, i);
    return (uint32_t)(hw_double(seed, dist, i / 2) >> i % 2 * 32);
}

static inline uint32_t fill_angle(uint64_t seed, uint64_t place) {
    float v = (float)(hw_mix(seed + place) >> 40) * 0x1p-24f * 6.0f - 3.0f;
    uint32_t u;
    memcpy(&u, &v, 4);
    return u;
}

struct corpus_buffer {
    uint32_t words; /* 0: there is none */
    bool out;       /* compared; what is not, is an input the kernel may write */
    enum corpus_fill fill;
    enum hw_type type;
    enum hw_dist dist;
};

static inline uint32_t fill_at(const struct corpus_buffer *b, uint64_t seed, uint32_t i) {
    switch (b->fill) {
    case FILL_ZERO:
        return 0;
    case FILL_INDEX:
        return i;
    case FILL_NUMBERS:
        return (2 * i + 1) << 16 | 2 * i;
    case FILL_CORNERS:
        return golden_word(i % CORPUS_N, i / CORPUS_N);
    case FILL_ANGLES:
        return fill_angle(seed, i);
    case FILL_SMALL:
        if (b->type == HW_F64)
            return (uint32_t)(fill_small(hw_mix(seed + i / 2), 11, 52) >> i % 2 * 32);
        return fill_small_word(b->type, hw_mix(seed * UINT64_C(0x1000193) + i * 2u));
    case FILL_VALUES:
        return fill_value(seed, b->type, b->dist, i);
    case FILL_DISTS:
        return fill_value(seed, b->type, (enum hw_dist)((uint64_t)i * HW_DISTS / b->words), i);
    case FILL_HIGH: {
        uint64_t r = hw_mix(seed + i);
        return i < b->words / 2 ? (uint32_t)r
                                : (r & 1 ? 0x7fffff00u : 0x80000000u) + (uint32_t)(r >> 8 & 0xff);
    }
    default:
        return 0xa5a5a5a5u;
    }
}

#endif
