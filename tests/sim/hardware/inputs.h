/* Contents of registers and memory, the same on the GPU and in the simulator: a function of a seed
 * and a place.
 *
 * A distribution says what is hard about a case. Factors are made as bits of their type; the same
 * functions make accumulators (types f32, f16, s32, f64). */
#ifndef HARDWARE_INPUTS_H
#define HARDWARE_INPUTS_H

#include <stdint.h>
#include <string.h>

enum hw_dist {
    HW_NORMAL, /* near 1, signed */
    HW_CANCEL, /* large terms that cancel, small ones that remain */
    HW_WIDE,   /* all exponents that stay finite */
    HW_TINY,   /* subnormals, zeros of both signs */
    HW_BITS,   /* any bits at all: NaN and infinity too */
    HW_SPARSE, /* zeros of both signs, a few of any size */
    HW_DISTS
};

static inline uint64_t hw_mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A float format: exponent and mantissa bits. The exponent of the distribution's values is chosen
 * between lo and hi, as a field. */
static inline uint64_t hw_float(uint64_t r, int ebits, int mbits, int lo, int hi) {
    uint64_t mantissa = r & ((UINT64_C(1) << mbits) - 1);
    uint64_t field = (uint64_t)(lo + (int)((r >> 53) % (uint64_t)(hi - lo + 1)));
    return (r >> 52 & 1) << (ebits + mbits) | field << mbits | mantissa;
}
static inline uint64_t hw_value(uint64_t r, enum hw_dist dist, int ebits, int mbits) {
    int bias = (1 << (ebits - 1)) - 1, top = 2 * bias;
    switch (dist) {
    case HW_NORMAL:
        return hw_float(r, ebits, mbits, bias - 1, bias);
    case HW_CANCEL: /* three in four small; the large ones have few bits */
        if (r >> 40 & 3)
            return hw_float(r, ebits, mbits, bias - (bias > 10 ? 6 : 3),
                            bias - 3 > 0 ? bias - 3 : 1);
        return (r >> 52 & 1) << (ebits + mbits) | (uint64_t)(bias + 3) << mbits;
    case HW_WIDE:
        return hw_float(r, ebits, mbits, 1, top - 1);
    case HW_TINY:
        return r >> 40 & 1 ? hw_float(r, ebits, mbits, 0, 0)
                           : hw_float(r, ebits, mbits, bias, bias) & ~((UINT64_C(1) << mbits) - 1);
    case HW_SPARSE:
        return r >> 40 & 7 ? (r >> 52 & 1) << (ebits + mbits)
                           : hw_float(r, ebits, mbits, 1, top - 1);
    default:
        return r & (ebits + mbits == 63 ? ~UINT64_C(0) : (UINT64_C(1) << (ebits + mbits + 1)) - 1);
    }
}

/* Names of types as PTX has them, by the first letters that tell them apart. */
enum hw_type { HW_F16, HW_BF16, HW_TF32, HW_E4M3, HW_E5M2, HW_INT, HW_F32, HW_F64, HW_INT_HIGH };

static inline uint32_t hw_word(uint64_t seed, enum hw_type t, enum hw_dist dist, uint64_t place) {
    uint64_t r = hw_mix(seed * UINT64_C(0x1000193) + place * 2), q = hw_mix(r);
    switch (t) {
    case HW_F16:
        return (uint32_t)(hw_value(r, dist, 5, 10) | hw_value(q, dist, 5, 10) << 16);
    case HW_BF16:
        return (uint32_t)(hw_value(r, dist, 8, 7) | hw_value(q, dist, 8, 7) << 16);
    case HW_E4M3:
    case HW_E5M2: {
        uint32_t w = 0;
        for (int i = 0; i < 4; i++, r = hw_mix(r))
            w |= (uint32_t)(t == HW_E4M3 ? hw_value(r, dist, 4, 3) : hw_value(r, dist, 5, 2))
                 << 8 * i;
        return w;
    }
    case HW_TF32:
    case HW_F32:
        return (uint32_t)hw_value(r, dist, 8, 23);
    case HW_INT_HIGH: /* near the ends of s32 */
        return (uint32_t)((r & 1 ? 0x7fffff00u : 0x80000000u) + (r >> 8 & 0xff));
    default:
        return (uint32_t)r;
    }
}
static inline uint64_t hw_double(uint64_t seed, enum hw_dist dist, uint64_t place) {
    return hw_value(hw_mix(seed * UINT64_C(0x1000193) + place * 2), dist, 11, 52);
}

#endif
