/* ldmatrix, stmatrix and movmatrix: 8x8 matrices of 16-bit elements between shared memory and a
 * warp's registers. Lane 8 i + r holds the address of row r of matrix i; register i takes matrix i.
 * The forms of 8-bit elements do not exist below sm_100. */
#ifndef SIM_TILE_MATRIX_H
#define SIM_TILE_MATRIX_H

#include "sim/tile.h"

#define TILE_MATRIX_ROW_BYTES 16u

struct tile_matrix {
    uint8_t count; /* 1, 2 or 4 matrices, and registers */
    bool trans;
};
/* mods of ldmatrix, stmatrix or movmatrix. */
bool tile_matrix_parse(const str *mods, size_t n, struct tile_matrix *out, const char **why);
/* `row` has 8 * count pointers to 16 bytes: where the first lanes' addresses point. */
void tile_matrix_load(const struct tile_matrix *f, const uint8_t *const *row, uint32_t *const *d);
void tile_matrix_store(const struct tile_matrix *f, uint8_t *const *row, const uint32_t *const *s);
void tile_matrix_move(uint32_t *d, const uint32_t *s); /* movmatrix.trans; d may be s */

#endif
