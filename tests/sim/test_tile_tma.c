/* The walk over boxes against a loop over elements; mbarrier words; reductions. */
#include "tap.h"

#include "sim/lane_math.h"
#include "sim/tile_mbarrier.h"
#include "sim/tile_tma.h"

#define GLOBAL_BYTES (256u << 10)
#define SHARED_BYTES (64u << 10)
#define BASE         UINT64_C(0x10000000)
static uint8_t global[GLOBAL_BYTES], got[SHARED_BYTES], want[SHARED_BYTES];

static struct tile_map map_2d(enum tile_map_type t, uint32_t cols, uint32_t rows, uint32_t box0,
                              uint32_t box1, uint32_t swizzle) {
    uint32_t bytes = tile_map_type_bytes(t);
    return (struct tile_map){.global = BASE,
                             .rank = 2,
                             .type = t,
                             .extent = {cols, rows},
                             .stride = {bytes, (cols * bytes + 15) / 16 * 16},
                             .box = {box0, box1},
                             .step = {1, 1},
                             .swizzle = swizzle};
}

/* By definition: element after element, its shared address swizzled by itself; a swizzled row takes
 * as many bytes as the swizzle has. */
static void expect_load(const struct tile_map *m, const int32_t *at, uint32_t shared) {
    uint32_t bytes = tile_map_type_bytes(m->type), i[5] = {0}, n[5] = {1, 1, 1, 1, 1}, row = 0;
    for (unsigned r = 0; r < m->rank; r++)
        n[r] = r ? (m->box[r] + m->step[r] - 1) / m->step[r] : m->box[r];
    for (i[4] = 0; i[4] < n[4]; i[4]++)
        for (i[3] = 0; i[3] < n[3]; i[3]++)
            for (i[2] = 0; i[2] < n[2]; i[2]++)
                for (i[1] = 0; i[1] < n[1]; i[1]++, row++)
                    for (i[0] = 0; i[0] < n[0]; i[0]++) {
                        bool inside = true;
                        uint64_t from = 0;
                        for (unsigned r = 0; r < m->rank; r++) {
                            int64_t c = (int64_t)at[r] + (int64_t)i[r] * (r ? m->step[r] : 1);
                            inside &= c >= 0 && c < (int64_t)m->extent[r];
                            from += (uint64_t)c * m->stride[r];
                        }
                        for (uint32_t b = 0; b < bytes; b++) {
                            uint32_t w = m->swizzle, pitch = w ? w : n[0] * bytes;
                            uint32_t to = shared + row * pitch + i[0] * bytes + b;
                            uint32_t bits = w == 128 ? 7 : w == 64 ? 3 : w == 32 ? 1 : 0;
                            to ^= (to >> 7 & bits) << 4;
                            want[to] = inside ? global[from + b] : 0;
                        }
                    }
}

static uint64_t run_load(const struct tile_map *m, const int32_t *at, uint32_t shared) {
    struct tile_walk w;
    struct tile_piece p;
    uint64_t bytes = 0;
    tile_walk_start(&w, m, at, shared, false);
    while (tile_walk_next(&w, &p)) {
        bytes += p.bytes;
        CHECK(p.bytes > 0 && p.shared + p.bytes <= SHARED_BYTES);
        if (p.inside)
            memcpy(got + p.shared, global + (p.global - BASE), p.bytes);
        else
            tile_map_fill(m, got + p.shared, p.bytes);
    }
    return bytes;
}
static void check_load(const struct tile_map *m, const int32_t *at, uint32_t shared) {
    uint8_t bytes[TILE_MAP_BYTES];
    struct tile_map back;
    struct err err = {0};
    bool ok = tile_map_encode(m, bytes, &err) && tile_map_decode(bytes, &back);
    CHECKF(ok, "%s", err.text);
    if (!ok)
        return;
    memset(got, 0xee, sizeof got);
    memset(want, 0xee, sizeof want);
    expect_load(m, at, shared);
    CHECK(run_load(&back, at, shared) == tile_map_box_bytes(m));
    CHECKF(memcmp(got, want, sizeof got) == 0, "rank %u swizzle %u at (%d, %d)", m->rank,
           m->swizzle, at[0], at[1]);
}

static void fill_global(void) {
    for (uint32_t i = 0; i < GLOBAL_BYTES; i++)
        global[i] = (uint8_t)(i * 37 + i / 251);
}

static void test_boxes(void) {
    static const int32_t starts[][2] = {
        {0, 0},    {8, 3},   {-4, -2}, {60, 30}, {-100, 0},      {0, -64},      {1000, 5},
        {3, 1000}, {-1, 31}, {63, 31}, {-31, 0}, {INT32_MIN, 0}, {0, INT32_MAX}};
    static const uint32_t swizzles[] = {0, 32, 64, 128};
    fill_global();
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++)
        for (int i = 0; i < 4; i++) {
            uint32_t row = swizzles[i] ? swizzles[i] : 64;
            struct tile_map m = map_2d(TILE_MAP_F16, 61, 33, row / 2, 8, swizzles[i]);
            check_load(&m, starts[s], 1024 + 128 * (uint32_t)i);
            m = map_2d(TILE_MAP_F32, 45, 20, row / 8, 5, swizzles[i]); /* rows half as long */
            check_load(&m, starts[s], 2048);
            m = map_2d(TILE_MAP_U8, 100, 7, row, 16, swizzles[i]);
            check_load(&m, starts[s], 128);
        }
}

static void test_ranks(void) {
    fill_global();
    struct tile_map m = {.global = BASE,
                         .rank = 5,
                         .type = TILE_MAP_F32,
                         .extent = {12, 7, 5, 4, 3},
                         .stride = {4, 48, 48 * 7, 48 * 35, 48 * 140},
                         .box = {8, 4, 3, 2, 2},
                         .step = {1, 1, 2, 1, 1}};
    const int32_t at[5] = {6, -1, 1, 3, 1}, zero[5] = {0};
    for (m.rank = 1; m.rank <= 5; m.rank++) {
        check_load(&m, at, 0);
        check_load(&m, zero, 256);
    }
    m.rank = 3;
    m.step[1] = 3;
    m.box[1] = 7; /* 7 in steps of 3: 3 rows */
    CHECK(tile_map_box_bytes(&m) == 8 * 4 * 3 * 2);
    check_load(&m, zero, 0);
}

static void test_rules(void) {
    struct tile_map good = map_2d(TILE_MAP_F16, 64, 64, 64, 8, 128), m;
    uint8_t bytes[TILE_MAP_BYTES];
    struct err err;
    CHECK(tile_map_encode(&good, bytes, &err));
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        m = good;                                                                                  \
        change;                                                                                    \
        CHECK(!tile_map_encode(&m, bytes, &err));                                                  \
    } while (0)
    REFUSED(m.global += 8);
    REFUSED(m.rank = 0);
    REFUSED(m.rank = 6);
    REFUSED(m.extent[1] = 0);
    REFUSED(m.stride[1] += 8);
    REFUSED(m.box[1] = 257);
    REFUSED(m.box[0] = 0);
    REFUSED(m.box[0] = 4);
    REFUSED(m.box[0] = 128);
    REFUSED(m.swizzle = 16);
    REFUSED(m.step[1] = 9);
    REFUSED(m.interleave = 16);
    REFUSED(m.type = TILE_MAP_NO_TYPE);
    REFUSED((m.type = TILE_MAP_U16, m.fill_nan = true));
    CHECK(!tile_map_decode((const uint8_t[TILE_MAP_BYTES]){0}, &m));
    CHECK(tile_map_decode(bytes, &m) && m.extent[1] == 64);
    CHECK(tile_map_replace(bytes, S("global_dim"), 1, 100, &err));
    CHECK(tile_map_decode(bytes, &m) && m.extent[1] == 100);
    CHECK(tile_map_replace(bytes, S("global_address"), 0, BASE + 4096, &err));
    CHECK(tile_map_decode(bytes, &m) && m.global == BASE + 4096);
    CHECK(!tile_map_replace(bytes, S("global_address"), 0, BASE + 1, &err));
    CHECK(!tile_map_replace(bytes, S("global_dim"), 2, 1, &err));
    CHECK(!tile_map_replace(bytes, S("nonsense"), 0, 1, &err));
    memset(bytes + 80, 0xff, 8); /* a kernel wrote over it */
    CHECK(!tile_map_decode(bytes, &m));
    CHECK(tile_bulk_check(0, 16, 32) == NULL && tile_bulk_check(8, 0, 16) &&
          tile_bulk_check(0, 8, 16) && tile_bulk_check(0, 0, 8));
    m = map_2d(TILE_MAP_F32, 4096, 4096, 256, 256, 0); /* the driver encodes it */
    CHECK(tile_map_encode(&m, bytes, &err) && tile_tensor_check(&m, (int32_t[5]){0}, 0, false));
    m = map_2d(TILE_MAP_F16, 64, 64, 8, 256, 128); /* 4 KiB, over 32 of shared memory */
    m.rank = 3;
    m.extent[2] = 64;
    m.stride[2] = 64 * 128;
    m.step[2] = 1;
    m.box[2] = 7;
    CHECK(!tile_tensor_check(&m, (int32_t[5]){0}, 0, false));
    m.box[2] = 8;
    CHECK(tile_map_box_bytes(&m) == 32u << 10 && tile_tensor_check(&m, (int32_t[5]){0}, 0, false));
}

static void test_places(void) {
    static const struct {
        const char *what;
        enum tile_map_type type;
        int32_t at[2];
        uint32_t shared;
        bool store, legal;
    } rows[] = {
        {"the tensor's begin", TILE_MAP_F16, {0, 0}, 128, false, true},
        {"shared memory between 128 bytes", TILE_MAP_F16, {0, 0}, 64, false, false},
        {"16 bytes in", TILE_MAP_F16, {8, 3}, 0, false, true},
        {"14 bytes in", TILE_MAP_F16, {7, 3}, 0, false, false},
        {"16 bytes before", TILE_MAP_F32, {-4, -1}, 0, false, true},
        {"12 bytes before", TILE_MAP_F32, {-3, 0}, 0, false, false},
        {"a byte that is a multiple of 16", TILE_MAP_U8, {48, 0}, 0, true, true},
        {"a store between 16 bytes", TILE_MAP_U8, {60, 0}, 0, true, false},
        {"a store before the row", TILE_MAP_F32, {-4, 0}, 0, true, false},
        {"a store before the first row", TILE_MAP_F32, {4, -1}, 0, true, false},
        {"a store past the end", TILE_MAP_F32, {4000, 4000}, 0, true, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tile_map m = map_2d(rows[i].type, 64, 64, 16, 8, 0);
        bool legal = !tile_tensor_check(&m, rows[i].at, rows[i].shared, rows[i].store);
        CHECKF(legal == rows[i].legal, "%s", rows[i].what);
    }
}

/* Where rows of 100 bytes are stored: whole pieces of 16, into the padding after them. */
static void test_store_ends(void) {
    struct tile_map m = map_2d(TILE_MAP_F32, 25, 3, 32, 4, 0);
    struct tile_walk w;
    struct tile_piece p;
    uint32_t inside = 0, rows = 0;
    tile_walk_start(&w, &m, (int32_t[2]){0, 0}, 0, true);
    for (; tile_walk_next(&w, &p); inside += p.inside ? p.bytes : 0)
        rows += p.inside && (p.global - BASE) % m.stride[1] == 0 && p.bytes == 112;
    CHECK(inside == 3 * 112 && rows == 3);
    tile_walk_start(&w, &m, (int32_t[2]){28, 0}, 0, true); /* beyond even that */
    while (tile_walk_next(&w, &p))
        CHECK(!p.inside);
}

static void test_values(void) {
    struct tile_map m = map_2d(TILE_MAP_BF16, 8, 8, 8, 1, 0);
    uint16_t h[4];
    m.fill_nan = true;
    tile_map_fill(&m, (uint8_t *)h, sizeof h);
    CHECK(h[0] == 0x7ff7 && h[3] == 0x7ff7);
    static const uint32_t in[] = {0x3f801000, 0x3f803000, 0x00000001, 0x7f800001, 0xbf801001};
    static const uint32_t out[] = {0x3f800000, 0x3f804000, 0x00000000, 0x7f800001, 0xbf802000};
    uint32_t u[5];
    m.type = TILE_MAP_TF32;
    tile_map_convert(&m, (uint8_t *)u, (const uint8_t *)in, sizeof in);
    CHECK(memcmp(u, out, sizeof out) == 0);
    m.type = TILE_MAP_F32_FTZ;
    tile_map_convert(&m, (uint8_t *)u, (const uint8_t *)in, sizeof in);
    CHECK(u[0] == in[0] && u[2] == 0);
}

static void test_reductions(void) {
    static const struct {
        enum tile_reduce_op op;
        enum tile_map_type t;
        uint64_t x, y, want;
    } rows[] = {
        {TILE_REDUCE_ADD, TILE_MAP_U32, 0xffffffff, 2, 1},
        {TILE_REDUCE_MIN, TILE_MAP_S32, 1, 0xffffffff, 0xffffffff},
        {TILE_REDUCE_MIN, TILE_MAP_U32, 1, 0xffffffff, 1},
        {TILE_REDUCE_MAX, TILE_MAP_S64, 1, ~UINT64_C(0), 1},
        {TILE_REDUCE_INC, TILE_MAP_U32, 5, 5, 0},
        {TILE_REDUCE_INC, TILE_MAP_U32, 4, 5, 5},
        {TILE_REDUCE_DEC, TILE_MAP_U32, 0, 5, 5},
        {TILE_REDUCE_DEC, TILE_MAP_U32, 6, 5, 5},
        {TILE_REDUCE_XOR, TILE_MAP_U64, 6, 5, 3},
        {TILE_REDUCE_ADD, TILE_MAP_F16, 0x3c00, 0x3c00, 0x4000},
        {TILE_REDUCE_MAX, TILE_MAP_BF16, 0x3f80, 0xbf80, 0x3f80},
        {TILE_REDUCE_ADD, TILE_MAP_F32, 0x3f800000, 0x3f800000, 0x40000000},
        {TILE_REDUCE_ADD, TILE_MAP_F64, UINT64_C(0x3ff0000000000000), UINT64_C(0x3ff0000000000000),
         UINT64_C(0x4000000000000000)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t x = rows[i].x;
        CHECK(tile_reduce_exists(rows[i].op, rows[i].t));
        tile_reduce(rows[i].op, rows[i].t, (uint8_t *)&x, (const uint8_t *)&rows[i].y,
                    tile_map_type_bytes(rows[i].t));
        CHECKF(x == rows[i].want, "row %zu: %llx", i, (unsigned long long)x);
    }
    CHECK(!tile_reduce_exists(TILE_REDUCE_MIN, TILE_MAP_F32));
    CHECK(!tile_reduce_exists(TILE_REDUCE_INC, TILE_MAP_S32));
    CHECK(tile_reduce_find(S("xor")) == TILE_REDUCE_XOR);
    CHECK(tile_reduce_find(S("mul")) == TILE_REDUCE_NONE);
}

static void test_mbarrier(void) {
    uint64_t w = 0, token = 0, first = 0;
    CHECK(tile_mbarrier_arrive(&w, 1, NULL) == MBARRIER_NONE_HERE);
    CHECK(tile_mbarrier_init(&w, 0) == MBARRIER_BAD_COUNT);
    CHECK(tile_mbarrier_init(&w, 1u << 20) == MBARRIER_BAD_COUNT);
    CHECK(tile_mbarrier_init(&w, 3) == MBARRIER_OK);
    CHECK(tile_mbarrier_pending(w) == 3 && tile_mbarrier_parity(w) == 0);
    CHECK(tile_mbarrier_arrive(&w, 1, &first) == MBARRIER_OK);
    CHECK(tile_mbarrier_pending(first) == 3 && !tile_mbarrier_passed(w, first));
    CHECK(!tile_mbarrier_passed_parity(w, 0) && tile_mbarrier_passed_parity(w, 1));
    CHECK(tile_mbarrier_arrive_expect_tx(&w, 1, 4096, &token) == MBARRIER_OK);
    CHECK(tile_mbarrier_tx(w) == 4096);
    CHECK(tile_mbarrier_arrive(&w, 1, NULL) == MBARRIER_OK); /* the bytes are missing */
    CHECK(tile_mbarrier_arrive(&w, 1, NULL) == MBARRIER_TOO_MANY);
    CHECK(tile_mbarrier_complete_tx(&w, 4000) == MBARRIER_OK);
    CHECK(tile_mbarrier_complete_tx(&w, 96) == MBARRIER_COMPLETED);
    CHECK(tile_mbarrier_passed(w, first) && tile_mbarrier_passed_parity(w, 0));
    CHECK(!tile_mbarrier_passed_parity(w, 1) && tile_mbarrier_pending(w) == 3);
    /* Bytes may come before they are expected. */
    CHECK(tile_mbarrier_complete_tx(&w, 64) == MBARRIER_OK && tile_mbarrier_tx(w) == -64);
    CHECK(tile_mbarrier_arrive(&w, 2, NULL) == MBARRIER_OK);
    CHECK(tile_mbarrier_arrive_expect_tx(&w, 1, 64, NULL) == MBARRIER_COMPLETED);
    CHECK(tile_mbarrier_parity(w) == 0);
    CHECK(tile_mbarrier_drop(&w, 1, NULL) == MBARRIER_OK);
    CHECK(tile_mbarrier_expected(w) == 2 && tile_mbarrier_pending(w) == 2);
    CHECK(tile_mbarrier_arrive(&w, 2, NULL) == MBARRIER_COMPLETED && tile_mbarrier_pending(w) == 2);
    CHECK(tile_mbarrier_expect_arrival(&w) == MBARRIER_OK && tile_mbarrier_pending(w) == 3);
    CHECK(tile_mbarrier_expect_tx(&w, (1 << 20) - 1) == MBARRIER_OK);
    CHECK(tile_mbarrier_expect_tx(&w, 1) == MBARRIER_TX_OVERFLOW);
    CHECK(tile_mbarrier_complete_tx(&w, UINT32_MAX) == MBARRIER_TX_OVERFLOW);
    CHECK(tile_mbarrier_tx(w) == (1 << 20) - 1);
    CHECK(tile_mbarrier_init(&w, TILE_MBARRIER_MAX_COUNT) == MBARRIER_OK);
    CHECK(tile_mbarrier_pending(w) == TILE_MBARRIER_MAX_COUNT && tile_mbarrier_tx(w) == 0);
}

static const struct tap_case cases[] = {
    {"boxes inside, across and outside the tensor, every swizzle", test_boxes},
    {"ranks 1 to 5, element strides", test_ranks},
    {"tensor maps: the rules", test_rules},
    {"where tensor copies may begin", test_places},
    {"where stores end", test_store_ends},
    {"fill, rounding, flushing", test_values},
    {"reductions", test_reductions},
    {"mbarrier", test_mbarrier},
};
TAP_CASES(cases)
