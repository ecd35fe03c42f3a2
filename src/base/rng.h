/* Philox4x32-10 streams, keyed by a seed and a name.
 *
 * A stream is a pure function from (seed, name, position) to 128 bits, so any element can be made
 * alone, in any order, on the CPU or on a GPU, with the same bits. Uniforms use integer shifts
 * only; the normal is Wichura's AS241 with a logarithm of our own, in plain IEEE double + - * /
 * sqrt, no contraction (device code: --fmad=false), so its bits agree too. assets/rng/philox.cuh is
 * the device half; a test compiles and compares them. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include "base/str.h"

struct rng {
    uint32_t key[2];
};

struct rng rng_stream(uint64_t seed, str name);
struct rng rng_sub(struct rng r, uint64_t index); /* an independent stream */

void rng_block(struct rng r, uint64_t position, uint32_t out[4]);
uint64_t rng_u64(struct rng r, uint64_t position);
double rng_unit(struct rng r, uint64_t position);                /* [0,1), multiples of 2^-53 */
float rng_unit24(struct rng r, uint64_t position);               /* [0,1), multiples of 2^-24 */
double rng_normal(struct rng r, uint64_t position);              /* mean 0, variance 1; |x| < 8.3 */
uint64_t rng_below(struct rng r, uint64_t position, uint64_t n); /* [0,n), n > 0; multiply-high */
/* The same of positions first, first + 1, …: many at a time, with the same bits. */
void rng_u64_many(struct rng r, uint64_t first, size_t n, uint64_t *out);
void rng_unit_many(struct rng r, uint64_t first, size_t n, double *out);
void rng_normal_many(struct rng r, uint64_t first, size_t n, double *out);

void rng_order(struct rng r, size_t n, size_t *out); /* 0 … n - 1 in an order drawn at random */

bool rng_secret(uint64_t *out); /* from the operating system */

#endif
