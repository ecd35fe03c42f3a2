/* mma.sync and wmma: products of small matrices whose elements lie spread over a warp's registers.
 *
 * A form is what the instruction's suffixes say, checked once when the program is loaded; a run
 * takes registers and writes registers. The layout of fragments is PTX's for mma.sync. For wmma
 * PTX leaves it open: a fragment here is the mma.sync fragments of its 16- or 8-row blocks one
 * after the other, and where PTX asks for more registers than there are elements (f16), those that
 * are left repeat the first ones. */
#ifndef SIM_TILE_MMA_H
#define SIM_TILE_MMA_H

#include "sim/tile.h"

#define TILE_MMA_MAX_REGS 8u

struct tile_mma {
    uint8_t m, n;
    uint16_t k;
    enum tile_type a, b, c, d;
    bool a_col, b_row; /* mma.m8n8k4 of halves; of wmma they do not matter here */
    bool quads;        /* mma.m8n8k4 of halves: four products, each by a quad pair */
    bool as_halves;    /* of 8-bit floats: the target has only mma of f16 for them */
    bool saturate;
    bool popc_and;          /* b1: and instead of xor */
    uint8_t round;          /* f64: 0 nearest even, 1 towards zero, 2 down, 3 up */
    uint8_t na, nb, nc, nd; /* registers of each operand */
    struct tile_model model;
};

/* `mods` are those of an instruction `mma` or of `wmma.mma` ("mma" itself left out or not). False:
 * `why` says what is wrong or not supported (sparse forms, shapes that do not exist for `sm`). */
bool tile_mma_parse(const str *mods, size_t n, unsigned sm, struct tile_mma *out, const char **why);
bool tile_wmma_parse(const str *mods, size_t n, unsigned sm, struct tile_mma *out,
                     const char **why);

/* All 32 lanes take part. d may be c. Multiplications: m * n * k (times 4 for `quads`). */
void tile_mma_run(const struct tile_mma *f, struct tile_scratch *s, void *const *d,
                  const void *const *a, const void *const *b, const void *const *c);

/* A fragment of wmma.load and wmma.store. Every register is moved in `pieces` pieces of
 * `piece_bytes` each, the first in its lowest bits. */
struct tile_fragment {
    char which; /* a, b, c, d */
    uint8_t m, n;
    uint16_t k;
    enum tile_type type;
    bool col;
    bool has_stride;   /* the instruction's operand; set by the caller */
    uint8_t nregs;     /* registers of the instruction */
    uint8_t distinct;  /* of these; register r is a copy of r % distinct */
    uint8_t reg_bytes; /* 4 or 8 */
    uint8_t pieces, piece_bytes;
};
/* mods of wmma.load and wmma.store from "load" or "store" on. */
bool tile_fragment_parse(const str *mods, size_t n, struct tile_fragment *out, const char **why);
/* Byte offsets, by lane, of a piece of a register. `stride` is the leading dimension in elements;
 * 0: the matrix is packed. */
void tile_fragment_offsets(const struct tile_fragment *f, unsigned reg, unsigned piece,
                           uint32_t stride, int64_t *offset);

#endif
