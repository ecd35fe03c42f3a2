/* wgmma.mma_async: a warpgroup multiplies tiles of shared memory that descriptors describe.
 *
 * Shared memory is read in pieces of 16 bytes; tile_wgmma_pieces names them, so that the caller
 * can check bounds, initialisation and races before it lets the product run. D, and A where it is
 * in registers, are given by warp: register i of warp w is at index w * count + i. Nothing here
 * waits: the caller decides when the product happens. */
#ifndef SIM_TILE_WGMMA_H
#define SIM_TILE_WGMMA_H

#include "sim/tile.h"

#define TILE_WGMMA_MAX_PIECES 512u
#define TILE_WGMMA_WARPS      4u
#define TILE_WGMMA_A_REGS     4u

struct tile_wgmma {
    uint16_t n;
    uint16_t k;
    enum tile_type a, b, d;
    bool saturate;
    uint8_t nd; /* registers of D a warp */
    struct tile_model model;
    /* From the operands, set by the caller: */
    bool a_in_registers;
    bool negate_a, negate_b; /* imm-scale of -1 */
    bool trans_a, trans_b;   /* imm-trans of 1: M- or N-major; 16-bit types only */
};
bool tile_wgmma_parse(const str *mods, size_t n, struct tile_wgmma *out, const char **why);
/* NULL, or what the immediates ask for that the hardware does not have. */
const char *tile_wgmma_check(const struct tile_wgmma *f);

struct tile_desc {
    uint32_t start, leading, stride; /* bytes */
    uint8_t base_offset;
    uint8_t swizzle; /* 0, 32, 64, 128 */
};
struct tile_desc tile_desc_decode(uint64_t bits);

/* Addresses in the shared window of the 16-byte pieces of A (b false) or B: of a K-major operand
 * two a row, in order; of an M- or N-major one, those of k = 0, then of k = 1 … Returns how many.
 */
size_t tile_wgmma_pieces(const struct tile_wgmma *f, bool b, uint64_t desc, uint32_t *address);

/* `shared` is the CTA's window of `bytes` bytes; pieces outside read as zero. `a` is NULL unless
 * a_in_registers. With !scale_d, D is taken as zero. */
void tile_wgmma_run(const struct tile_wgmma *f, struct tile_scratch *s, const uint8_t *shared,
                    size_t bytes, uint64_t desc_a, uint64_t desc_b, const void *const *a,
                    void *const *d, bool scale_d);

#endif
