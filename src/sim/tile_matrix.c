/* ldmatrix, stmatrix, movmatrix: lane l holds elements 2 (l % 4) and the next of row l / 4; of a
 * transposed matrix, of column l / 4. */
#include "sim/tile_matrix.h"

#include <string.h>

bool tile_matrix_parse(const str *mods, size_t n, struct tile_matrix *out, const char **why) {
    *out = (struct tile_matrix){.count = 1};
    for (size_t i = 0; i < n; i++) {
        str s = mods[i];
        if (str_is(s, "x1") || str_is(s, "x2") || str_is(s, "x4")) {
            out->count = (uint8_t)(s.p[1] - '0');
        } else if (str_is(s, "trans")) {
            out->trans = true;
        } else if (str_is(s, "b8") || str_starts(s, S("b8x")) || str_is(s, "m16n16") ||
                   str_is(s, "m16n8") || str_is(s, "m8n16")) {
            *why = "8-bit matrices need sm_100; load 16-bit pairs";
            return false;
        } else if (!str_is(s, "sync") && !str_is(s, "aligned") && !str_is(s, "m8n8") &&
                   !str_is(s, "b16") && !str_is(s, "shared") && !str_is(s, "shared::cta")) {
            *why = "a suffix that no ldmatrix, stmatrix or movmatrix has";
            return false;
        }
    }
    return true;
}

void tile_matrix_load(const struct tile_matrix *f, const uint8_t *const *row, uint32_t *const *d) {
    for (unsigned i = 0; i < f->count; i++) {
        if (!f->trans) { /* a row is four lanes as they stand */
            for (unsigned r = 0; r < 8; r++)
                memcpy(d[i] + 4 * r, row[8 * i + r], TILE_MATRIX_ROW_BYTES);
            continue;
        }
        uint16_t e[8][8];
        for (unsigned r = 0; r < 8; r++)
            for (unsigned g = 0; g < 8; g++)
                memcpy(&e[g][r], row[8 * i + r] + 2 * g, 2);
        memcpy(d[i], e, sizeof e);
    }
}

void tile_matrix_store(const struct tile_matrix *f, uint8_t *const *row, const uint32_t *const *s) {
    for (unsigned i = 0; i < f->count; i++) {
        uint16_t e[8][8];
        for (unsigned lane = 0; lane < SIM_LANES; lane++) {
            unsigned g = lane / 4, t = 2 * (lane % 4);
            *(f->trans ? &e[t][g] : &e[g][t]) = (uint16_t)s[i][lane];
            *(f->trans ? &e[t + 1][g] : &e[g][t + 1]) = (uint16_t)(s[i][lane] >> 16);
        }
        for (unsigned r = 0; r < 8; r++)
            memcpy(row[8 * i + r], e[r], TILE_MATRIX_ROW_BYTES);
    }
}

void tile_matrix_move(uint32_t *d, const uint32_t *s) {
    struct tile_matrix plain = {.count = 1}, trans = {.count = 1, .trans = true};
    uint8_t rows[8][TILE_MATRIX_ROW_BYTES];
    uint8_t *to[8];
    const uint8_t *from[8];
    for (unsigned r = 0; r < 8; r++)
        from[r] = to[r] = rows[r];
    tile_matrix_store(&plain, to, &s);
    tile_matrix_load(&trans, from, &d);
}
