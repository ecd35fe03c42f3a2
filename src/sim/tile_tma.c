/* Tensor maps, and the walk over a box: rows of the innermost dimension, cut where the tensor ends
 * and, under a swizzle, into the 16 bytes that stay together. */
#include "sim/tile_tma.h"

#include "sim/lane_math.h"

#define MAGIC      UINT64_C(0x70616d2d656c6974) /* "tile-map" */
#define CHUNK      16u
#define MAX_SHARED (227u << 10)

static const uint8_t type_bytes[] = {
#define X(id, name, bytes) bytes,
    TILE_MAP_TYPES(X)
#undef X
};
unsigned tile_map_type_bytes(enum tile_map_type t) {
    return t < TILE_MAP_NO_TYPE ? type_bytes[t] : 0;
}
static bool is_float(enum tile_map_type t) {
    return t == TILE_MAP_F16 || t == TILE_MAP_F32 || t == TILE_MAP_F64 || t >= TILE_MAP_BF16;
}

/* The bytes of a map: little-endian fields one after the other. */
struct layout {
    uint64_t magic, global, stride[4];
    uint32_t last[5]; /* extent - 1 */
    uint16_t box[5];
    uint8_t step[5], rank, type, swizzle, fill_nan;
    uint8_t rest[41];
};
_Static_assert(sizeof(struct layout) == TILE_MAP_BYTES, "a tensor map is 128 bytes");

static bool check_dimension(const struct tile_map *m, unsigned i, struct err *err) {
    if (m->extent[i] == 0 || m->extent[i] > UINT64_C(1) << 32)
        return err_set(err, ERR_INPUT, "tensor map: extent %u must be 1 to 2^32", i);
    if (m->box[i] == 0 || m->box[i] > TILE_MAX_BOX)
        return err_set(err, ERR_INPUT, "tensor map: box %u must be 1 to 256", i);
    if (i == 0)
        return true;
    if (m->stride[i] % CHUNK || m->stride[i] >= UINT64_C(1) << 40)
        return err_set(err, ERR_INPUT,
                       "tensor map: stride %u must be a multiple of 16 bytes below 2^40", i);
    if (m->step[i] == 0 || m->step[i] > 8)
        return err_set(err, ERR_INPUT, "tensor map: element stride %u must be 1 to 8", i);
    return true;
}

static bool check_map(const struct tile_map *m, struct err *err) {
    uint32_t bytes = tile_map_type_bytes(m->type);
    if (m->rank < 1 || m->rank > TILE_MAX_RANK)
        return err_set(err, ERR_INPUT, "tensor map: rank must be 1 to 5");
    if (!bytes)
        return err_set(err, ERR_INPUT, "tensor map: this type of elements is not supported");
    if (m->global % CHUNK)
        return err_set(err, ERR_INPUT, "tensor map: the address must be a multiple of 16");
    if (m->interleave)
        return err_set(err, ERR_INPUT, "tensor map: interleaved layouts are not supported");
    for (unsigned i = 0; i < m->rank; i++)
        if (!check_dimension(m, i, err))
            return false;
    if (m->box[0] * bytes % CHUNK)
        return err_set(err, ERR_INPUT, "tensor map: the box's rows must be multiples of 16 bytes");
    if (m->swizzle != 0 && m->swizzle != 32 && m->swizzle != 64 && m->swizzle != 128)
        return err_set(err, ERR_INPUT, "tensor map: the swizzle must be 0, 32, 64 or 128 bytes");
    if (m->swizzle && m->box[0] * bytes > m->swizzle)
        return err_set(err, ERR_INPUT,
                       "tensor map: the box's rows are longer than the swizzle of %u bytes",
                       m->swizzle);
    if (m->fill_nan && !is_float(m->type))
        return err_set(err, ERR_INPUT, "tensor map: only floats can be filled with NaN");
    return true;
}

static void encode(const struct tile_map *m, uint8_t *out) {
    struct layout l = {.magic = MAGIC,
                       .global = m->global,
                       .rank = (uint8_t)m->rank,
                       .type = (uint8_t)m->type,
                       .swizzle = (uint8_t)m->swizzle,
                       .fill_nan = m->fill_nan};
    for (unsigned i = 0; i < m->rank; i++) {
        l.last[i] = (uint32_t)(m->extent[i] - 1);
        l.box[i] = (uint16_t)m->box[i];
        l.step[i] = (uint8_t)(i ? m->step[i] : 1);
        if (i)
            l.stride[i - 1] = m->stride[i];
    }
    memcpy(out, &l, sizeof l);
}
bool tile_map_encode(const struct tile_map *m, uint8_t *out, struct err *err) {
    if (!check_map(m, err))
        return false;
    encode(m, out);
    return true;
}

bool tile_map_decode(const uint8_t *bytes, struct tile_map *out) {
    struct layout l;
    struct err err;
    memcpy(&l, bytes, sizeof l);
    if (l.magic != MAGIC || l.rank < 1 || l.rank > TILE_MAX_RANK || l.type >= TILE_MAP_NO_TYPE)
        return false;
    *out = (struct tile_map){.global = l.global,
                             .rank = l.rank,
                             .type = (enum tile_map_type)l.type,
                             .swizzle = l.swizzle,
                             .fill_nan = l.fill_nan != 0};
    for (unsigned i = 0; i < l.rank; i++) {
        out->extent[i] = (uint64_t)l.last[i] + 1;
        out->box[i] = l.box[i];
        out->step[i] = l.step[i];
        out->stride[i] = i ? l.stride[i - 1] : type_bytes[l.type];
    }
    return check_map(out, &err); /* it lies in memory that a kernel can write */
}

static bool replace(struct tile_map *m, str field, uint32_t ord, uint64_t value) {
    static const uint32_t swizzles[] = {0, 32, 64, 128};
    if (str_is(field, "global_address"))
        m->global = value;
    else if (str_is(field, "rank") && value < TILE_MAX_RANK)
        m->rank = (uint32_t)value + 1; /* PTX counts from 0 */
    else if (str_is(field, "box_dim") && ord < m->rank && value <= TILE_MAX_BOX)
        m->box[ord] = (uint32_t)value;
    else if (str_is(field, "global_dim") && ord < m->rank)
        m->extent[ord] = value;
    else if (str_is(field, "global_stride") && ord + 1 < m->rank)
        m->stride[ord + 1] = value;
    else if (str_is(field, "element_stride") && ord < m->rank && value <= 8)
        m->step[ord] = (uint32_t)value;
    else if (str_is(field, "elemtype") && value < TILE_MAP_NO_TYPE)
        m->type = (enum tile_map_type)value;
    else if (str_is(field, "swizzle_mode") && value < 4)
        m->swizzle = swizzles[value];
    else if (str_is(field, "fill_mode") && value < 2)
        m->fill_nan = value == 1;
    else
        return str_is(field, "interleave_layout") && value == 0;
    return true;
}
bool tile_map_replace(uint8_t *bytes, str field, uint32_t ord, uint64_t value, struct err *err) {
    struct tile_map m;
    if (!tile_map_decode(bytes, &m))
        return err_set(err, ERR_INPUT, "tensormap.replace: no tensor map at this address");
    if (!replace(&m, field, ord, value))
        return err_set(err, ERR_INPUT, "tensormap.replace: %.*s %u cannot be %llu", STR_ARG(field),
                       ord, (unsigned long long)value);
    return tile_map_encode(&m, bytes, err);
}

static uint32_t box_count(const struct tile_map *m, unsigned i) {
    return i ? (m->box[i] + m->step[i] - 1) / m->step[i] : m->box[0];
}
uint32_t tile_map_box_bytes(const struct tile_map *m) {
    uint64_t bytes = tile_map_type_bytes(m->type); /* at most 8 * 256^5 */
    for (unsigned i = 0; i < m->rank; i++)
        bytes *= box_count(m, i);
    return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

/* From row to row of a box in shared memory. */
static uint32_t row_pitch(const struct tile_map *m) {
    return m->swizzle ? m->swizzle : m->box[0] * tile_map_type_bytes(m->type);
}
static uint64_t box_span(const struct tile_map *m) {
    uint64_t bytes = row_pitch(m); /* at most 2048 * 256^4 */
    for (unsigned i = 1; i < m->rank; i++)
        bytes *= box_count(m, i);
    return bytes;
}

void tile_walk_start(struct tile_walk *w, const struct tile_map *m, const int32_t *coordinate,
                     uint32_t shared, bool store) {
    *w = (struct tile_walk){.map = m,
                            .shared = shared,
                            .store = store,
                            .row_bytes = m->box[0] * tile_map_type_bytes(m->type)};
    for (unsigned i = 0; i < m->rank; i++) {
        w->start[i] = coordinate[i];
        w->count[i] = box_count(m, i);
    }
}

/* The row's address, if it is in the tensor at all. */
static bool row_address(const struct tile_walk *w, uint64_t *address) {
    const struct tile_map *m = w->map;
    *address = m->global;
    for (unsigned i = 1; i < m->rank; i++) {
        int64_t c = w->start[i] + (int64_t)w->at[i] * m->step[i];
        if (c < 0 || (uint64_t)c >= m->extent[i])
            return false;
        *address += (uint64_t)c * m->stride[i];
    }
    return true;
}

static void next_row(struct tile_walk *w) {
    unsigned i = 1;
    w->shared += row_pitch(w->map);
    w->row_done = 0;
    while (i < w->map->rank && ++w->at[i] == w->count[i])
        w->at[i++] = 0;
    w->done = i == w->map->rank;
}

bool tile_walk_next(struct tile_walk *w, struct tile_piece *out) {
    const struct tile_map *m = w->map;
    if (w->done)
        return false;
    int64_t size = tile_map_type_bytes(m->type), at = w->row_done;
    int64_t first = -w->start[0] * size; /* of the row's bytes, those of the tensor */
    int64_t end = ((int64_t)m->extent[0] - w->start[0]) * size;
    if (w->store && end > 0)
        end = (end + CHUNK - 1) / CHUNK * CHUNK;
    uint64_t row;
    bool inside = row_address(w, &row) && at >= first && at < end;
    int64_t stop = w->row_bytes;
    if (inside && end < stop)
        stop = end;
    if (!inside && at < first && first < stop && end > first)
        stop = first;
    uint32_t linear = w->shared + (uint32_t)at, line = CHUNK - linear % CHUNK;
    if (m->swizzle && stop - at > line)
        stop = at + line;
    *out = (struct tile_piece){.global = inside ? row + (uint64_t)(at - first) : 0,
                               .shared = tile_swizzle(linear, m->swizzle),
                               .bytes = (uint32_t)(stop - at),
                               .inside = inside};
    w->row_done = (uint32_t)stop;
    if (w->row_done == w->row_bytes)
        next_row(w);
    return true;
}

void tile_map_fill(const struct tile_map *m, uint8_t *dst, size_t bytes) {
    static const uint8_t nan[] = {0xf7, 0x7f}; /* one pattern for every width of a float */
    memset(dst, 0, bytes);
    for (size_t i = 0; m->fill_nan && i < bytes; i++)
        dst[i] = nan[i % 2];
}

void tile_map_convert(const struct tile_map *m, uint8_t *dst, const uint8_t *src, size_t bytes) {
    bool flush = m->type == TILE_MAP_F32_FTZ || m->type == TILE_MAP_TF32_FTZ;
    bool round = m->type == TILE_MAP_TF32 || m->type == TILE_MAP_TF32_FTZ;
    if (dst != src)
        memcpy(dst, src, bytes);
    for (size_t i = 0; (flush || round) && i + 4 <= bytes; i += 4) {
        uint32_t u;
        memcpy(&u, dst + i, 4);
        bool finite = (u & 0x7f800000u) != 0x7f800000u;
        if (flush && !(u & 0x7f800000u))
            u &= 0x80000000u;
        if (round && finite) /* to the nearest, ties to even */
            u = (u + 0xfffu + (u >> 13 & 1)) & ~0x1fffu;
        memcpy(dst + i, &u, 4);
    }
}

const char *tile_bulk_check(uint64_t dst, uint64_t src, uint64_t bytes) {
    if (bytes % CHUNK)
        return "the size of a bulk copy must be a multiple of 16 bytes";
    if (dst % CHUNK)
        return "the destination of a bulk copy must be a multiple of 16";
    return src % CHUNK ? "the source of a bulk copy must be a multiple of 16" : NULL;
}
/* An H200 answers the last two with an illegal instruction. */
const char *tile_tensor_check(const struct tile_map *m, const int32_t *coordinate, uint32_t shared,
                              bool store) {
    if (box_span(m) > MAX_SHARED)
        return "the tensor map's box is larger than shared memory";
    if (shared % 128)
        return "a tensor copy's shared memory must be aligned to 128 bytes";
    if ((int64_t)coordinate[0] * tile_map_type_bytes(m->type) % CHUNK)
        return "a tensor copy must begin at a multiple of 16 bytes: its innermost coordinate";
    for (unsigned i = 0; store && i < m->rank; i++)
        if (coordinate[i] < 0)
            return "a tensor store must not begin at a negative coordinate";
    return NULL;
}

/* ---- the reductions of bulk copies ---- */

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
