/* What memory and registers hold that nothing wrote: bits that no kernel can foresee, from the
 * launch's key. Half of them are any bits at all: huge and tiny numbers, indices far outside, now
 * and then a NaN. Of the others most are numbers as data has them, for a sum or a maximum that
 * would hide the rest, and some are all ones: NaN, -1. None is zero, for that is what a kernel
 * hopes for. A block begins somewhere in one stretch of it, so that starting a block costs a copy.
 */
#include "sim/machine.h"

#include "base/rng.h"

#include <string.h>

#define PIECE 4u /* words of one kind */

static uint32_t word(uint64_t kind, uint64_t bits) {
    uint32_t v = (uint32_t)bits;
    if (kind < 8)
        return v | (v == 0);
    if (kind < 14) /* a float of either sign between 1/8 and 8 */
        return (v & 0x807fffff) | (124u + (uint32_t)(bits >> 32) % 6) << 23;
    return UINT32_MAX;
}

uint8_t *noise_new(uint64_t key) {
    const struct rng bits = rng_stream(key, S("unwritten")), kinds = rng_sub(bits, 1);
    uint64_t random[NOISE_BYTES / 4];
    uint8_t *noise = mem_alloc(NOISE_BYTES);
    rng_u64_many(bits, 0, NOISE_BYTES / 4, random);
    for (size_t i = 0; i < NOISE_BYTES / 4; i++) {
        uint32_t v = word(rng_below(kinds, i / PIECE, 16), random[i]);
        memcpy(noise + 4 * i, &v, 4);
    }
    return noise;
}

void noise_fill(const struct launch *la, void *to, size_t bytes, uint64_t salt) {
    size_t at = (size_t)((salt + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 40) * 4 % NOISE_BYTES;
    uint8_t *p = to;
    while (bytes) {
        size_t n = NOISE_BYTES - at < bytes ? NOISE_BYTES - at : bytes;
        memcpy(p, la->noise + at, n);
        p += n;
        bytes -= n;
        at = 0;
    }
}
