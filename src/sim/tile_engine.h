/* Private to the tile files: unpacking operands and multiplying them, compiled for any CPU and for
 * x86-64 with AVX2 as lanes.h does it, with equal bits.
 *
 * B is cut into strips of 8 columns, and a strip's columns are kept in the order 0 2 4 6 1 3 5 7:
 * then the four lanes that share a row of an accumulator hold, in each of its two registers, four
 * neighbours of the strip, and accumulators need no rearranging at all. */
#ifndef SIM_TILE_ENGINE_H
#define SIM_TILE_ENGINE_H

#include "sim/tile.h"

#define TILE_ZERO    (-1000) /* the exponent of a zero */
#define TILE_SPECIAL 4000    /* and of an infinity or a NaN: it prevails over a zero's */

struct tile_job {
    struct tile_scratch *s;
    struct tile_model model;
    unsigned k;      /* factors in a row of the scratch: of b1, words of 32 */
    unsigned rows;   /* a multiple of 8 */
    unsigned strips; /* of 8 columns */
    unsigned halves; /* groups of 8 rows in a warp */
    unsigned count;  /* registers of an accumulator a warp */
    void *const *d;
    const void *const *c; /* NULL: zero */
    bool half;            /* accumulators are f16, two in a register */
    bool half_c;          /* C alone */
    bool saturate, bits, bits_and;
};

struct tile_engine {
    void (*unpack_a)(struct tile_scratch *s, enum tile_type t, unsigned rows, unsigned k);
    void (*unpack_b)(struct tile_scratch *s, enum tile_type t, unsigned cols, unsigned k);
    void (*floats)(const struct tile_job *j);
    void (*ints)(const struct tile_job *j);
    void (*doubles)(const struct tile_job *j); /* a and b of the scratch as doubles */
};
extern const struct tile_engine tile_engine_any;
#if defined(__x86_64__)
extern const struct tile_engine tile_engine_x86v3;
#endif
const struct tile_engine *tile_engine_get(void);

/* The definition (tile.h), on unpacked factors: `step` is the distance of b's. */
double tile_dot_exact(const struct tile_model *m, unsigned n, const float *a, const int32_t *ae,
                      const float *b, const int32_t *be, unsigned step, float c, int32_t ce);

/* The end of a sum: towards zero to m->out bits, and to the nearest half. NaN gives the one NaN,
 * zeros are positive. */
float tile_round_f32(const struct tile_model *m, double sum);

#endif
