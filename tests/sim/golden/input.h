/* The inputs of the golden kernels: word k (0 to 2) of thread i. Corner cases of integers and
 * floats against each other, then random bits, moderate floats and small integers in turn. */
#ifndef TESTS_SIM_GOLDEN_INPUT_H
#define TESTS_SIM_GOLDEN_INPUT_H

#include <stdint.h>

#define GOLDEN_N 384u

static inline uint32_t golden_mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

static inline uint32_t golden_word(uint32_t i, uint32_t k) {
    static const uint32_t corners[] = {
        0,          1,          0xffffffff, 0x80000000, 0x7fffffff, 0x3f800000, 0xbf800000,
        0x7f800000, 0xff800000, 0x7fc00000, 0x00000003, 0x807fffff, 0x00800000, 0x7f7fffff,
        0x4f000000, 0xcf000000, 0x4b000001, 0x3f000000, 0x477ff000, 0x33000001,
    };
    const uint32_t n = sizeof corners / sizeof *corners;
    uint32_t r = golden_mix(i * 3 + k + 1);
    if (i < 128)
        return k == 0 ? corners[i % n] : corners[(i / n * 7 + i * 3 + k * 5) % n];
    if (i % 4 == 0)
        return r;
    if (i % 4 == 3)
        return r % 64;
    uint32_t exponent = 127 - 12 + golden_mix(r) % 20; /* 2^-12 to 2^7 */
    return (r & 0x807fffffu) | exponent << 23;
}

#endif
