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

/* ---- ldmatrix, stmatrix and movmatrix ----
 *
 * 8x8 matrices of 16-bit elements between shared memory and a
 * warp's registers. Lane 8 i + r holds the address of row r of matrix i; register i takes matrix i.
 * The forms of 8-bit elements do not exist below sm_100. */

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

/* ---- mma.sync and wmma ----
 *
 * Products of small matrices whose elements lie spread over a warp's registers.
 *
 * A form is what the instruction's suffixes say, checked once when the program is loaded; a run
 * takes registers and writes registers. The layout of fragments is PTX's for mma.sync. For wmma
 * PTX leaves it open: a fragment here is the mma.sync fragments of its 16- or 8-row blocks one
 * after the other, and where PTX asks for more registers than there are elements (f16), those that
 * are left repeat the first ones. */

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

/* ---- wgmma.mma_async ----
 *
 * A warpgroup multiplies tiles of shared memory that descriptors describe.
 *
 * Shared memory is read in pieces of 16 bytes; tile_wgmma_pieces names them, so that the caller
 * can check bounds, initialisation and races before it lets the product run. D, and A where it is
 * in registers, are given by warp: register i of warp w is at index w * count + i. Nothing here
 * waits: the caller decides when the product happens. */

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
