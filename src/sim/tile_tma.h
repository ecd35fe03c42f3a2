/* Bulk asynchronous copies: tensor maps, the walk over a box, reductions.
 *
 * The driver's encoding of a tensor map is opaque; a map here is 128 bytes in a layout of its own,
 * marked, so that a kernel that is handed anything else is caught. The walk names, piece by piece,
 * the global bytes and the shared bytes of a copy; the caller moves them, because it knows what
 * memory there is, which buffer a byte belongs to, and when the copy takes effect. A multicast copy
 * is the same walk into the same offsets of every CTA of the mask. */
#ifndef SIM_TILE_TMA_H
#define SIM_TILE_TMA_H

#include "base/err.h"

#define TILE_MAP_BYTES 128u
#define TILE_MAX_RANK  5u
#define TILE_MAX_BOX   256u

/* In the driver's order (CUtensorMapDataType). */
#define TILE_MAP_TYPES(X)                                                                          \
    X(U8, "u8", 1)                                                                                 \
    X(U16, "u16", 2)                                                                               \
    X(U32, "u32", 4)                                                                               \
    X(S32, "s32", 4)                                                                               \
    X(U64, "u64", 8)                                                                               \
    X(S64, "s64", 8)                                                                               \
    X(F16, "f16", 2)                                                                               \
    X(F32, "f32", 4)                                                                               \
    X(F64, "f64", 8)                                                                               \
    X(BF16, "bf16", 2)                                                                             \
    X(F32_FTZ, "f32.ftz", 4)                                                                       \
    X(TF32, "tf32", 4)                                                                             \
    X(TF32_FTZ, "tf32.ftz", 4)
enum tile_map_type {
#define X(id, name, bytes) TILE_MAP_##id,
    TILE_MAP_TYPES(X)
#undef X
        TILE_MAP_NO_TYPE
};
unsigned tile_map_type_bytes(enum tile_map_type t);

struct tile_map {
    uint64_t global; /* address */
    uint32_t rank;   /* 1 to 5 */
    enum tile_map_type type;
    uint64_t extent[TILE_MAX_RANK]; /* elements; up to 2^32 */
    uint64_t stride[TILE_MAX_RANK]; /* bytes; of dimension 0 it is the element's size */
    uint32_t box[TILE_MAX_RANK];    /* elements */
    uint32_t step[TILE_MAX_RANK];   /* element strides; of dimension 0 it is ignored, as 1 */
    uint32_t swizzle;               /* bytes: 0, 32, 64, 128 */
    uint32_t interleave;            /* bytes: 0 alone is supported */
    bool fill_nan;                  /* outside the tensor; zero otherwise */
};

/* cuTensorMapEncodeTiled: its rules, and 128 bytes. */
bool tile_map_encode(const struct tile_map *m, uint8_t *out, struct err *err);
bool tile_map_decode(const uint8_t *bytes, struct tile_map *out); /* false: not a map */
/* tensormap.replace: `field` as PTX spells it ("global_address", "global_dim", …), `ord` its
 * dimension. The result is checked as in tile_map_encode. */
bool tile_map_replace(uint8_t *bytes, str field, uint32_t ord, uint64_t value, struct err *err);

/* Bytes of a box: what a load adds to its mbarrier, inside the tensor or not. In shared memory it
 * may take more: under a swizzle rows lie as many bytes apart as the swizzle has, however short
 * they are, and what is between them stays as it was. */
uint32_t tile_map_box_bytes(const struct tile_map *m);

/* The shared address where the byte at a linear address lies. */
static inline uint32_t tile_swizzle(uint32_t address, uint32_t bytes) {
    uint32_t chunks = bytes / 16; /* 2, 4, 8; of 0 none are exchanged */
    return chunks ? address ^ (address >> 3 & (chunks - 1) << 4) : address;
}

struct tile_piece {
    uint64_t global; /* address; meaningless when outside */
    uint32_t shared;
    uint32_t bytes;
    bool inside; /* loads fill what is not, stores leave it out */
};
struct tile_walk { /* private */
    const struct tile_map *map;
    int64_t start[TILE_MAX_RANK];
    uint32_t count[TILE_MAX_RANK], at[TILE_MAX_RANK];
    uint32_t row_bytes, row_done, shared;
    bool store, done;
};
/* `coordinate` may be negative or past the extents; `shared` is the box's address. Loads see a
 * tensor that ends with its last element. Stores and reductions write whole pieces of 16 bytes: of
 * a row that ends inside of one they write into the padding that follows it, as an H200 does. */
void tile_walk_start(struct tile_walk *w, const struct tile_map *m, const int32_t *coordinate,
                     uint32_t shared, bool store);
bool tile_walk_next(struct tile_walk *w, struct tile_piece *out);

/* What a load writes outside the tensor, and what it does to what it read (flushing, rounding). */
void tile_map_fill(const struct tile_map *m, uint8_t *dst, size_t bytes);
void tile_map_convert(const struct tile_map *m, uint8_t *dst, const uint8_t *src, size_t bytes);

/* NULL, or the rule that a copy breaks. */
const char *tile_bulk_check(uint64_t dst, uint64_t src, uint64_t bytes);
const char *tile_tensor_check(const struct tile_map *m, const int32_t *coordinate, uint32_t shared,
                              bool store);

enum tile_reduce_op {
    TILE_REDUCE_ADD,
    TILE_REDUCE_MIN,
    TILE_REDUCE_MAX,
    TILE_REDUCE_INC,
    TILE_REDUCE_DEC,
    TILE_REDUCE_AND,
    TILE_REDUCE_OR,
    TILE_REDUCE_XOR,
    TILE_REDUCE_NONE /* no such operation */
};
enum tile_reduce_op tile_reduce_find(str name);
/* Is there such a reduction? cp.reduce.async.bulk's rules. */
bool tile_reduce_exists(enum tile_reduce_op op, enum tile_map_type t);
/* dst = dst op src, element by element. */
void tile_reduce(enum tile_reduce_op op, enum tile_map_type t, uint8_t *dst, const uint8_t *src,
                 size_t bytes);

#endif
