/* wgmma against matrices laid out in shared memory by CUTLASS's canonical layouts
 * (mma_traits_sm90_gmma.hpp), in elements, each address through the swizzle by its definition;
 * ldmatrix and stmatrix against rows and columns. */
#include "hardware/inputs.h"
#include "tap.h"

#include "sim/lane_math.h"
#include "sim/tile.h"

#define SHARED (160u << 10)
static struct tile_scratch scratch;
static uint8_t shared[SHARED];
static uint32_t regs_d[4 * 128][32], regs_a[16][32];
static void *d[4 * 128];
static const void *a[16];
static uint32_t mat_a[64][32], mat_b[256][32];

static bool parse(const char *text, struct tile_wgmma *f, const char **why) {
    str rest = str_view(text), word, mods[16];
    size_t n = 0;
    while (n < 16 && str_word(&rest, '.', &word))
        mods[n++] = word;
    return tile_wgmma_parse(mods, n, f, why);
}

/* Swizzle<B,4,3> of CuTe on a byte address. */
static uint32_t cute_swizzle(uint32_t at, unsigned bits) {
    uint32_t mask = ((1u << bits) - 1) << 7;
    return at ^ (at & mask) >> 3;
}

struct layout {
    unsigned width; /* in bytes of the swizzle; 0: none */
    bool mn;
    uint32_t lbo, sbo; /* bytes */
};
static unsigned swizzle_bits(unsigned width) {
    return width == 128 ? 3 : width == 64 ? 2 : width == 32 ? 1 : 0;
}
/* Byte address of element (r, k): T is elements in 16 bytes. */
static uint32_t element_at(const struct layout *l, uint32_t start, unsigned r, unsigned k,
                           unsigned bytes) {
    unsigned t = 16 / bytes, w = l->width / 16;
    uint32_t at = 0;
    if (!l->mn) /* ((8,m),(T,2)) */
        at = r % 8 * (w ? w : 1) * 16 + r / 8 * l->sbo + k % t * bytes + k / t * (w ? 16 : l->lbo);
    else if (w) /* ((T,W,m),(8,k)) */
        at = r % t * bytes + r / t % w * 16 + r / t / w * l->lbo + k % 8 * w * 16 + k / 8 * l->sbo;
    else /* ((T,1,m),(8,k)) */
        at = r % t * bytes + r / t * l->sbo + k % 8 * 16 + k / 8 * l->lbo;
    return cute_swizzle(start + at, swizzle_bits(l->width));
}
static uint64_t descriptor(const struct layout *l, uint32_t start) {
    uint64_t type = l->width == 128 ? 1 : l->width == 64 ? 2 : l->width == 32 ? 3 : 0;
    return start >> 4 | (uint64_t)(l->lbo >> 4) << 16 | (uint64_t)(l->sbo >> 4) << 32 | type << 62;
}

/* Strides that keep everything apart: a row group of 8 lines, a column of atoms. */
static struct layout make_layout(unsigned width, bool mn) {
    struct layout l = {.width = width, .mn = mn};
    unsigned atom = 8 * (width ? width : 16);
    if (!mn) {
        l.sbo = width ? atom : 2 * atom;
        l.lbo = width ? 16 : atom;
    } else if (width) {
        l.sbo = atom;
        l.lbo = 2 * atom;
    } else {
        l.lbo = atom;
        l.sbo = 2 * atom;
    }
    return l;
}

static enum hw_type input_type(enum tile_type t) {
    return t == TILE_F16    ? HW_F16
           : t == TILE_BF16 ? HW_BF16
           : t == TILE_TF32 ? HW_TF32
           : t == TILE_E4M3 ? HW_E4M3
           : t == TILE_E5M2 ? HW_E5M2
                            : HW_INT;
}
static void make_matrix(uint32_t (*m)[32], unsigned rows, unsigned k, enum tile_type t,
                        enum hw_dist dist, uint64_t seed) {
    unsigned bits = tile_type_bits(t);
    for (unsigned r = 0; r < rows; r++)
        for (unsigned i = 0; i < k; i++) {
            uint32_t w = hw_word(seed, input_type(t), dist, r * 64 + i);
            m[r][i] = bits == 32 ? w : w & ((1u << bits) - 1);
        }
}
static void put_matrix(uint32_t (*m)[32], unsigned rows, unsigned k, enum tile_type t,
                       const struct layout *l, uint32_t start) {
    unsigned bytes = tile_type_bits(t) / 8;
    for (unsigned r = 0; r < rows; r++)
        for (unsigned i = 0; i < k; i++)
            memcpy(shared + element_at(l, start, r, i, bytes), &m[r][i], bytes);
}

static int32_t value8(uint32_t u, enum tile_type t) {
    return t == TILE_S8 ? (int8_t)u : (int32_t)u;
}
static uint32_t sign_bit(enum tile_type t) {
    return 1u << (tile_type_bits(t) - 1);
}
static uint32_t expect(const struct tile_wgmma *f, unsigned m, unsigned n, uint32_t c) {
    uint32_t row[32];
    for (unsigned k = 0; k < f->k; k++)
        row[k] = mat_a[m][k] ^ (f->negate_a != f->negate_b ? sign_bit(f->a) : 0);
    if (f->d == TILE_S32) {
        int64_t sum = (int32_t)c;
        for (unsigned k = 0; k < f->k; k++)
            sum += value8(row[k], f->a) * value8(mat_b[n][k], f->b);
        if (f->saturate)
            sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
        return (uint32_t)(uint64_t)sum;
    }
    if (f->d == TILE_F16)
        return tile_dot_f16(&scratch, &f->model, f->a, f->b, row, mat_b[n], f->k, c);
    return bits_of(tile_dot_f32(&scratch, &f->model, f->a, f->b, row, mat_b[n], f->k, float_of(c)));
}

/* CLayout_64xN: ((4,8,4),(2,2,N/8)):((128,1,16),(64,8,512)) */
static uint32_t *accumulator(const struct tile_wgmma *f, unsigned m, unsigned n, unsigned *shift) {
    unsigned warp = m / 16, lane = m % 8 * 4 + n % 8 / 2, v = n % 2 + m % 16 / 8 * 2 + n / 8 * 4;
    *shift = f->d == TILE_F16 ? v % 2 * 16 : 0;
    return &regs_d[warp * f->nd + (f->d == TILE_F16 ? v / 2 : v)][lane];
}
static uint32_t read_d(const struct tile_wgmma *f, unsigned m, unsigned n) {
    unsigned shift;
    uint32_t u = *accumulator(f, m, n, &shift);
    return f->d == TILE_F16 ? u >> shift & 0xffff : u;
}

static void check_run(struct tile_wgmma *f, const char *name, uint64_t da, uint64_t db,
                      bool scale_d, enum hw_dist dist) {
    static uint32_t c[64][256];
    for (unsigned r = 0; r < 4u * f->nd; r++)
        for (unsigned lane = 0; lane < 32; lane++)
            regs_d[r][lane] = hw_word(77,
                                      f->d == TILE_F16   ? HW_F16
                                      : f->d == TILE_S32 ? HW_INT_HIGH
                                                         : HW_F32,
                                      dist, r * 32 + lane);
    for (unsigned m = 0; m < 64; m++)
        for (unsigned n = 0; n < f->n; n++)
            c[m][n] = scale_d ? read_d(f, m, n) : 0;
    CHECK(tile_wgmma_check(f) == NULL);
    tile_wgmma_run(f, &scratch, shared, SHARED, da, db, f->a_in_registers ? a : NULL, d, scale_d);
    for (unsigned m = 0; m < 64; m++)
        for (unsigned n = 0; n < f->n; n++) {
            uint32_t want = expect(f, m, n, c[m][n]), got = read_d(f, m, n);
            CHECKF(got == want, "%s (%u, %u): %08x, not %08x", name, m, n, got, want);
        }
}

static void prepare(struct tile_wgmma *f, const char *text, enum hw_dist dist) {
    const char *why = "";
    bool ok = parse(text, f, &why);
    CHECKF(ok, "%s: %s", text, why);
    make_matrix(mat_a, 64, f->k, f->a, dist, 11);
    make_matrix(mat_b, f->n, f->k, f->b, dist, 12);
    for (unsigned i = 0; i < 4 * 128; i++)
        d[i] = regs_d[i];
}

static void run_layouts(const char *text, unsigned wa, bool ta, unsigned wb, bool tb) {
    struct tile_wgmma f;
    prepare(&f, text, HW_NORMAL);
    f.trans_a = ta;
    f.trans_b = tb;
    struct layout la = make_layout(wa, ta), lb = make_layout(wb, tb);
    memset(shared, 0xff, sizeof shared); /* NaN wherever nothing was put */
    put_matrix(mat_a, 64, f.k, f.a, &la, 1024);
    put_matrix(mat_b, f.n, f.k, f.b, &lb, 65536);
    char name[128];
    snprintf(name, sizeof name, "%s A %u%s B %u%s", text, wa, ta ? " M-major" : "", wb,
             tb ? " N-major" : "");
    check_run(&f, name, descriptor(&la, 1024), descriptor(&lb, 65536), true, HW_NORMAL);
}

static void test_layouts(void) {
    static const unsigned widths[] = {0, 32, 64, 128};
    for (int i = 0; i < 4; i++)
        for (int t = 0; t < 4; t++) {
            run_layouts("mma_async.sync.aligned.m64n136k16.f32.bf16.bf16", widths[i], t & 1,
                        widths[(i + t) % 4], t & 2);
            if (!t) {
                run_layouts("mma_async.sync.aligned.m64n24k8.f32.tf32.tf32", widths[i], false,
                            widths[i], false);
                run_layouts("mma_async.sync.aligned.m64n48k32.s32.s8.u8", widths[i], false,
                            widths[3 - i], false);
            }
        }
}

static void test_types(void) {
    static const char *const texts[] = {"mma_async.sync.aligned.m64n16k16.f32.f16.f16",
                                        "mma_async.sync.aligned.m64n16k16.f16.f16.f16",
                                        "mma_async.sync.aligned.m64n8k16.f32.bf16.bf16",
                                        "mma_async.sync.aligned.m64n8k8.f32.tf32.tf32",
                                        "mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2",
                                        "mma_async.sync.aligned.m64n8k32.f16.e5m2.e4m3",
                                        "mma_async.sync.aligned.m64n8k32.s32.u8.s8",
                                        "mma_async.sync.aligned.m64n8k32.s32.s8.s8.satfinite"};
    struct layout l = make_layout(128, false);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int dist = 0; dist < HW_DISTS; dist++) {
            struct tile_wgmma f;
            prepare(&f, texts[i], (enum hw_dist)dist);
            put_matrix(mat_a, 64, f.k, f.a, &l, 0);
            put_matrix(mat_b, f.n, f.k, f.b, &l, 32768);
            check_run(&f, texts[i], descriptor(&l, 0), descriptor(&l, 32768), dist & 1,
                      (enum hw_dist)dist);
            f.negate_a = f.d != TILE_S32 && dist != HW_BITS;
            check_run(&f, texts[i], descriptor(&l, 0), descriptor(&l, 32768), true,
                      (enum hw_dist)dist);
        }
}

/* ALayout_64x16 of registers: ((4,8,4),(2,2,2)):((128,1,16),(64,8,512)) */
static void test_registers(void) {
    struct tile_wgmma f;
    prepare(&f, "mma_async.sync.aligned.m64n32k16.f32.f16.f16", HW_NORMAL);
    f.a_in_registers = true;
    struct layout l = make_layout(128, true);
    f.trans_b = true;
    put_matrix(mat_b, f.n, f.k, f.b, &l, 0);
    for (unsigned m = 0; m < 64; m++)
        for (unsigned k = 0; k < 16; k += 2) {
            unsigned reg = m / 16 * 4 + m % 16 / 8 + k / 8 * 2, lane = m % 8 * 4 + k % 8 / 2;
            regs_a[reg][lane] = mat_a[m][k] | mat_a[m][k + 1] << 16;
            a[reg] = regs_a[reg];
        }
    check_run(&f, "A in registers", 0, descriptor(&l, 0), true, HW_NORMAL);
}

/* A K-major atom of 128 bytes holds four tiles of k: kernels advance the start by 32 bytes. */
static void test_advance(void) {
    struct layout l = make_layout(128, false);
    struct tile_wgmma f;
    for (unsigned step = 0; step < 4; step++) {
        prepare(&f, "mma_async.sync.aligned.m64n8k16.f32.f16.f16", HW_NORMAL);
        for (unsigned r = 0; r < 64; r++)
            for (unsigned k = 0; k < 16; k++) {
                uint32_t at = r * 128 + step * 32 + k * 2;
                memcpy(shared + cute_swizzle(at, 3), &mat_a[r][k], 2);
                if (r < 8)
                    memcpy(shared + cute_swizzle(32768 + at, 3), &mat_b[r][k], 2);
            }
        check_run(&f, "advanced", descriptor(&l, 32 * step), descriptor(&l, 32768 + 32 * step),
                  false, HW_NORMAL);
    }
}

static void test_pieces(void) {
    struct tile_wgmma f;
    uint32_t at[TILE_WGMMA_MAX_PIECES];
    prepare(&f, "mma_async.sync.aligned.m64n256k16.f32.f16.f16", HW_NORMAL);
    struct layout l = make_layout(128, false);
    CHECK(tile_wgmma_pieces(&f, false, descriptor(&l, 1024), at) == 128);
    CHECK(at[0] == 1024 && at[1] == 1040 && at[2] == 1024 + 128 + 16);
    CHECK(tile_wgmma_pieces(&f, true, descriptor(&l, 1024), at) == 512);
    f.trans_b = true;
    CHECK(tile_wgmma_pieces(&f, true, descriptor(&l, 1024), at) == 512);
    struct tile_desc t = tile_desc_decode(descriptor(&l, 1024) | UINT64_C(5) << 49);
    CHECK(t.start == 1024 && t.stride == 1024 && t.base_offset == 5 && t.swizzle == 128);
    /* Past the end of shared memory: zeros, and nothing is touched. */
    prepare(&f, "mma_async.sync.aligned.m64n8k16.f32.f16.f16", HW_NORMAL);
    tile_wgmma_run(&f, &scratch, shared, 64, descriptor(&l, 0x3f000), descriptor(&l, 0x3f000), NULL,
                   d, false);
    CHECK(regs_d[0][0] == 0 && regs_d[15][31] == 0);
}

static void test_parse(void) {
    static const struct {
        const char *text;
        bool ok;
    } rows[] = {
        {"mma_async.sync.aligned.m64n256k16.f32.f16.f16", true},
        {"mma_async.sync.aligned.m64n256k256.s32.b1.b1.and.popc", true},
        {"mma_async.sync.aligned.m64n264k16.f32.f16.f16", false},
        {"mma_async.sync.aligned.m64n12k16.f32.f16.f16", false},
        {"mma_async.sync.aligned.m64n40k32.s32.s8.s8", false},
        {"mma_async.sync.aligned.m64n16k32.f32.f16.f16", false},
        {"mma_async.sync.aligned.m64n16k16.f16.bf16.bf16", false},
        {"mma_async.sync.aligned.m64n16k8.f16.tf32.tf32", false},
        {"mma_async.sync.aligned.m64n16k16.f32.f16.bf16", false},
        {"mma_async.sp.sync.aligned.m64n16k32.f32.f16.f16", false},
        {"mma_async.sync.aligned.m128n16k16.f32.f16.f16", false},
        {"mma_async.sync.aligned.m64n16k16.f32.f16.f16.satfinite", false},
        {"mma_async.sync.aligned.m64n16k16.f32.f16", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tile_wgmma f;
        const char *why = NULL;
        bool ok = parse(rows[i].text, &f, &why);
        CHECKF(ok == rows[i].ok && (ok || why), "%s", rows[i].text);
    }
    struct tile_wgmma f;
    const char *why;
    CHECK(parse("mma_async.sync.aligned.m64n16k8.f32.tf32.tf32", &f, &why));
    f.trans_b = true;
    CHECK(tile_wgmma_check(&f) != NULL);
}

static void test_matrices(void) {
    static uint8_t memory[32][16], back[32][16];
    const uint8_t *from[32];
    uint8_t *to[32];
    uint32_t regs[4][32], moved[32];
    uint32_t *load[4] = {regs[0], regs[1], regs[2], regs[3]};
    const uint32_t *store[4] = {regs[0], regs[1], regs[2], regs[3]};
    for (unsigned r = 0; r < 32; r++) {
        from[r] = memory[r];
        to[r] = back[r];
        for (unsigned i = 0; i < 8; i++) {
            uint16_t e = (uint16_t)(r * 8 + i);
            memcpy(memory[r] + 2 * i, &e, 2);
        }
    }
    for (unsigned count = 1; count <= 4; count *= 2)
        for (int trans = 0; trans < 2; trans++) {
            struct tile_matrix f = {.count = (uint8_t)count, .trans = trans};
            tile_matrix_load(&f, from, load);
            for (unsigned i = 0; i < count; i++)
                for (unsigned lane = 0; lane < 32; lane++) {
                    unsigned g = lane / 4, t = 2 * (lane % 4), base = i * 64;
                    uint32_t lo = trans ? base + t * 8 + g : base + g * 8 + t;
                    uint32_t hi = trans ? lo + 8 : lo + 1;
                    CHECK(regs[i][lane] == (lo | hi << 16));
                }
            memset(back, 0xff, sizeof back);
            tile_matrix_store(&f, to, store);
            CHECK(memcmp(memory, back, (size_t)16 * 8 * count) == 0);
            CHECK(count == 4 || back[8 * count][0] == 0xff);
        }
    struct tile_matrix plain = {.count = 1}, trans = {.count = 1, .trans = true};
    tile_matrix_load(&plain, from, load);
    tile_matrix_move(moved, regs[0]);
    tile_matrix_load(&trans, from, load);
    CHECK(memcmp(moved, regs[0], sizeof moved) == 0);
    str good[] = {S("sync"), S("aligned"), S("m8n8"), S("x2"), S("trans"), S("shared"), S("b16")};
    str bad[] = {S("sync"), S("aligned"), S("m16n16"), S("x1"), S("trans"), S("b8")};
    const char *why;
    CHECK(tile_matrix_parse(good, 7, &trans, &why) && trans.count == 2 && trans.trans);
    CHECK(!tile_matrix_parse(bad, 6, &trans, &why));
}

static const struct tap_case cases[] = {
    {"every major order and swizzle is CUTLASS's canonical layout", test_layouts},
    {"every type, signs, accumulators", test_types},
    {"A in registers", test_registers},
    {"descriptors advance inside a swizzled atom", test_advance},
    {"pieces of shared memory, and what lies outside", test_pieces},
    {"suffixes: what exists and what is refused", test_parse},
    {"ldmatrix, stmatrix, movmatrix", test_matrices},
};
TAP_CASES(cases)
