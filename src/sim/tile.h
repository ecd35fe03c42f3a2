/* What the tile modules share: element types, the scratch memory of a tile, and the model of a
 * tensor core's sums.
 *
 * The tile_ files are arithmetic and address arithmetic alone: fragments of tensor-core
 * instructions, shared-memory descriptors, tensor maps, mbarrier words. They know no warps, no
 * machine and no time; they allocate nothing and report nothing. Who may run an instruction, when
 * its effect becomes visible and which bytes it may touch is decided by their callers, to which
 * they name every byte.
 *
 * A register is 32 lanes of 4 bytes (8 of a double's), as everywhere in this room. */
#ifndef SIM_TILE_H
#define SIM_TILE_H

#include "base/str.h"
#include "sim/lanes.h"

#define TILE_TYPES(X)                                                                              \
    X(F16, "f16", 16)                                                                              \
    X(BF16, "bf16", 16)                                                                            \
    X(TF32, "tf32", 32)                                                                            \
    X(E4M3, "e4m3", 8)                                                                             \
    X(E5M2, "e5m2", 8)                                                                             \
    X(S8, "s8", 8)                                                                                 \
    X(U8, "u8", 8)                                                                                 \
    X(S4, "s4", 4)                                                                                 \
    X(U4, "u4", 4)                                                                                 \
    X(B1, "b1", 1)                                                                                 \
    X(F32, "f32", 32)                                                                              \
    X(S32, "s32", 32)                                                                              \
    X(F64, "f64", 64)

enum tile_type {
#define X(id, name, bits) TILE_##id,
    TILE_TYPES(X)
#undef X
        TILE_NO_TYPE
};
unsigned tile_type_bits(enum tile_type t);
enum tile_type tile_type_find(str name); /* TILE_NO_TYPE: no such type */

/* How a tensor core adds. Of `block` products and the accumulator, the largest exponent is found
 * (a product's is the sum of its factors', so its significand may reach 4); every term is cut off,
 * towards zero, `frac` bits below that exponent; the rest is added exactly and cut off to `out`
 * bits after the point. Longer dot products are several blocks in the order of k. */
struct tile_model {
    uint8_t block, frac, out;
};
/* `sm` is 80 for sm_80. Integers and doubles have no model: their sums are exact or IEEE. */
struct tile_model tile_model_of(unsigned sm, enum tile_type factor, bool wgmma);

/* The memory in which a tile's operands are unpacked; one a thread, zeroed at first; its
 * content is these files' own. Packed rows (columns of B) are as the instructions hold them: 4, 16
 * or 32 bytes of consecutive k. */
#define TILE_MAX_ROWS  64u
#define TILE_MAX_COLS  256u
#define TILE_MAX_K     32u
#define TILE_ROW_BYTES 32u
struct tile_scratch {
    _Alignas(64) uint8_t packed_a[TILE_MAX_ROWS * TILE_ROW_BYTES];
    _Alignas(64) uint8_t packed_b[TILE_MAX_COLS * TILE_ROW_BYTES];
    _Alignas(64) int32_t a[TILE_MAX_ROWS * TILE_MAX_K];  /* rows of k factors */
    _Alignas(64) int32_t ae[TILE_MAX_ROWS * TILE_MAX_K]; /* their exponents */
    _Alignas(64) int32_t b[TILE_MAX_COLS * TILE_MAX_K];  /* strips of 8 columns: k rows of 8 */
    _Alignas(64) int32_t be[TILE_MAX_COLS * TILE_MAX_K];
    /* What `a` holds the factors of, packed: kernels multiply one A by several B in a row. */
    _Alignas(64) uint8_t known_a[16 * TILE_ROW_BYTES];
    enum tile_type known_type;
    uint32_t known_rows, known_k;         /* 0 rows: it is not known */
    int32_t row_top[TILE_MAX_ROWS];       /* largest exponent of a row */
    int32_t strip_top[TILE_MAX_COLS / 8]; /* and of a strip */
};

/* One dot product by that definition, in plain arithmetic: what every faster path must equal, and
 * the place to change when the hardware says otherwise. `a` and `b` are the operands' bits. */
float tile_dot_f32(struct tile_scratch *s, const struct tile_model *m, enum tile_type ta,
                   enum tile_type tb, const uint32_t *a, const uint32_t *b, unsigned k, float c);
uint32_t tile_dot_f16(struct tile_scratch *s, const struct tile_model *m, enum tile_type ta,
                      enum tile_type tb, const uint32_t *a, const uint32_t *b, unsigned k,
                      uint32_t c);

#endif
