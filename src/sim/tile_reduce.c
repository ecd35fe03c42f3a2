/* The reductions of bulk copies. */
#include "sim/lane_math.h"
#include "sim/tile_tma.h"

static const char *const names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};

enum tile_reduce_op tile_reduce_find(str name) {
    unsigned i = 0;
    while (i < TILE_REDUCE_NONE && !str_is(name, names[i]))
        i++;
    return (enum tile_reduce_op)i;
}

bool tile_reduce_exists(enum tile_reduce_op op, enum tile_map_type t) {
    bool whole = t == TILE_MAP_U32 || t == TILE_MAP_S32 || t == TILE_MAP_U64 || t == TILE_MAP_S64;
    bool half = t == TILE_MAP_F16 || t == TILE_MAP_BF16;
    switch (op) {
    case TILE_REDUCE_ADD:
        return whole || half || t == TILE_MAP_F32 || t == TILE_MAP_F64 || t == TILE_MAP_F32_FTZ;
    case TILE_REDUCE_MIN:
    case TILE_REDUCE_MAX:
        return whole || half;
    case TILE_REDUCE_INC:
    case TILE_REDUCE_DEC:
        return t == TILE_MAP_U32;
    case TILE_REDUCE_AND:
    case TILE_REDUCE_OR:
    case TILE_REDUCE_XOR:
        return whole;
    case TILE_REDUCE_NONE:
        break;
    }
    return false;
}

static uint64_t whole_reduce(enum tile_reduce_op op, enum tile_map_type t, uint64_t x, uint64_t y) {
    bool narrow = t == TILE_MAP_U32 || t == TILE_MAP_S32;
    bool sign = t == TILE_MAP_S32 || t == TILE_MAP_S64;
    int64_t sx = narrow ? (int32_t)(uint32_t)x : (int64_t)x;
    int64_t sy = narrow ? (int32_t)(uint32_t)y : (int64_t)y;
    bool less = sign ? sx < sy : x < y;
    switch (op) {
    case TILE_REDUCE_ADD:
        return x + y;
    case TILE_REDUCE_MIN:
        return less ? x : y;
    case TILE_REDUCE_MAX:
        return less ? y : x;
    case TILE_REDUCE_INC:
        return x >= y ? 0 : x + 1;
    case TILE_REDUCE_DEC:
        return x == 0 || x > y ? y : x - 1;
    case TILE_REDUCE_AND:
        return x & y;
    case TILE_REDUCE_OR:
        return x | y;
    default:
        return x ^ y;
    }
}

static uint32_t half_reduce(enum tile_reduce_op op, bool bf16, uint32_t x, uint32_t y) {
    if (op == TILE_REDUCE_ADD)
        return bf16 ? bh_add(x, y) : h_add(x, y);
    if (op == TILE_REDUCE_MIN)
        return bf16 ? bh_min(x, y) : h_min(x, y);
    return bf16 ? bh_max(x, y) : h_max(x, y);
}

static uint64_t reduce(enum tile_reduce_op op, enum tile_map_type t, uint64_t x, uint64_t y) {
    switch (t) {
    case TILE_MAP_F16:
    case TILE_MAP_BF16:
        return half_reduce(op, t == TILE_MAP_BF16, (uint32_t)x, (uint32_t)y);
    case TILE_MAP_F32:
        return bits_of(f_add(float_of((uint32_t)x), float_of((uint32_t)y)));
    case TILE_MAP_F32_FTZ:
        return bits_of(ftz(f_add(ftz(float_of((uint32_t)x)), ftz(float_of((uint32_t)y)))));
    case TILE_MAP_F64:
        return bits_of_double(double_of(x) + double_of(y));
    default:
        return whole_reduce(op, t, x, y);
    }
}

void tile_reduce(enum tile_reduce_op op, enum tile_map_type t, uint8_t *dst, const uint8_t *src,
                 size_t bytes) {
    size_t size = tile_map_type_bytes(t);
    for (size_t i = 0; size && i + size <= bytes; i += size) {
        uint64_t x = 0, y = 0;
        memcpy(&x, dst + i, size);
        memcpy(&y, src + i, size);
        x = reduce(op, t, x, y);
        memcpy(dst + i, &x, size);
    }
}
