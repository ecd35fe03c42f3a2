/* Fragments against CUTLASS's layouts (cute/atom/mma_traits_sm*.hpp), written down here as CuTe
 * has them, and sums against a second evaluation of the definition in integers. */
#include "hardware/inputs.h"
#include "tap.h"

#include "sim/lane_math.h"
#include "sim/tile.h"
#include "sim/tile_engine.h"

static struct tile_scratch scratch;

static size_t split(const char *text, str *mods) {
    str rest = str_view(text), word;
    size_t n = 0;
    while (n < 16 && str_word(&rest, '.', &word))
        mods[n++] = word;
    return n;
}
static bool parse(const char *text, unsigned sm, struct tile_mma *f, const char **why) {
    str mods[16];
    size_t n = split(text, mods);
    return tile_mma_parse(mods, n, sm, f, why);
}

/* ((4,8),(v0,v1,v2)):((t0,t1),(s0,s1,s2)): lane and value to m + M k (n + N k; m + M n). */
struct cute {
    unsigned t[2], v[3], s[3];
};
static unsigned cute_at(const struct cute *l, unsigned lane, unsigned value) {
    unsigned at = lane % 4 * l->t[0] + lane / 4 * l->t[1];
    for (int i = 0; i < 3; i++) {
        at += value % l->v[i] * l->s[i];
        value /= l->v[i];
    }
    return at;
}
#define ROW16                                                                                      \
    {                                                                                              \
        {32, 1}, {2, 2, 1}, {                                                                      \
            16, 8, 0                                                                               \
        }                                                                                          \
    }
#define ROW8                                                                                       \
    {                                                                                              \
        {16, 1}, {2, 1, 1}, {                                                                      \
            8, 0, 0                                                                                \
        }                                                                                          \
    }
static const struct {
    const char *text;
    struct cute a, b, c;
} forms[] = {
    {"sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", ROW16, ROW8, ROW16},
    {"sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", ROW16, ROW8, ROW16},
    {"sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", ROW16, ROW8, ROW16},
    {"sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
     {{32, 1}, {2, 2, 2}, {16, 8, 128}},
     {{16, 1}, {2, 2, 1}, {8, 64, 0}},
     ROW16},
    {"sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
     {{32, 1}, {2, 2, 2}, {16, 8, 128}},
     {{16, 1}, {2, 2, 1}, {8, 64, 0}},
     ROW16},
    {"sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
     {{32, 1}, {2, 2, 2}, {16, 8, 128}},
     {{16, 1}, {2, 2, 1}, {8, 64, 0}},
     ROW16},
    {"sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
     {{16, 1}, {2, 1, 1}, {8, 0, 0}},
     {{8, 1}, {1, 1, 1}, {0}},
     ROW16},
    {"sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
     {{16, 1}, {2, 2, 1}, {8, 64, 0}},
     {{8, 1}, {2, 1, 1}, {32, 0, 0}},
     ROW16},
    {"sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32",
     {{64, 1}, {4, 2, 2}, {16, 8, 256}},
     {{32, 1}, {4, 2, 1}, {8, 128, 0}},
     ROW16},
    {"sync.aligned.m16n8k32.row.col.f16.e5m2.e4m3.f16",
     {{64, 1}, {4, 2, 2}, {16, 8, 256}},
     {{32, 1}, {4, 2, 1}, {8, 128, 0}},
     ROW16},
    {"sync.aligned.m8n8k16.row.col.s32.s8.u8.s32",
     {{32, 1}, {4, 1, 1}, {8, 0, 0}},
     {{32, 1}, {4, 1, 1}, {8, 0, 0}},
     ROW8},
    {"sync.aligned.m16n8k16.row.col.s32.u8.s8.s32",
     {{64, 1}, {4, 2, 1}, {16, 8, 0}},
     {{32, 1}, {4, 1, 1}, {8, 0, 0}},
     ROW16},
    {"sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32",
     {{64, 1}, {4, 2, 2}, {16, 8, 256}},
     {{32, 1}, {4, 2, 1}, {8, 128, 0}},
     ROW16},
    {"sync.aligned.m8n8k32.row.col.s32.s4.s4.s32",
     {{64, 1}, {8, 1, 1}, {8, 0, 0}},
     {{64, 1}, {8, 1, 1}, {8, 0, 0}},
     ROW8},
    {"sync.aligned.m16n8k64.row.col.s32.u4.s4.s32.satfinite",
     {{128, 1}, {8, 2, 2}, {16, 8, 512}},
     {{64, 1}, {8, 2, 1}, {8, 256, 0}},
     ROW16},
    {"sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc",
     {{512, 1}, {32, 2, 2}, {16, 8, 2048}},
     {{256, 1}, {32, 2, 1}, {8, 1024, 0}},
     ROW16},
    {"sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
     {{256, 1}, {32, 1, 1}, {8, 0, 0}},
     {{256, 1}, {32, 1, 1}, {8, 0, 0}},
     ROW8},
};

static uint32_t regs_a[8][32], regs_b[8][32], regs_c[8][32], regs_d[8][32];
static uint32_t mat_a[16][256], mat_b[8][256], mat_c[16][8], mat_d[16][8];

static void fill(uint32_t (*regs)[32], unsigned n, enum tile_type t, enum hw_dist dist,
                 uint64_t seed) {
    enum hw_type h = t == TILE_F16    ? HW_F16
                     : t == TILE_BF16 ? HW_BF16
                     : t == TILE_TF32 ? HW_TF32
                     : t == TILE_E4M3 ? HW_E4M3
                     : t == TILE_E5M2 ? HW_E5M2
                     : t == TILE_F32  ? HW_F32
                     : t == TILE_S32  ? (dist & 1 ? HW_INT_HIGH : HW_INT)
                                      : HW_INT;
    for (unsigned r = 0; r < n; r++)
        for (unsigned lane = 0; lane < 32; lane++)
            regs[r][lane] = hw_word(seed, h, dist, r * 32 + lane);
}
static uint32_t element(const uint32_t (*regs)[32], enum tile_type t, unsigned lane, unsigned i) {
    unsigned bits = tile_type_bits(t), each = 32 / bits;
    uint32_t u = regs[i / each][lane] >> bits * (i % each);
    return bits == 32 ? u : u & ((1u << bits) - 1);
}
static int32_t integer(uint32_t u, enum tile_type t) {
    unsigned bits = tile_type_bits(t);
    return t == TILE_S8 || t == TILE_S4 ? (int32_t)(u << (32 - bits)) >> (32 - bits) : (int32_t)u;
}

static int32_t expect_int(const struct tile_mma *f, unsigned m, unsigned n) {
    int64_t sum = (int32_t)mat_c[m][n];
    for (unsigned k = 0; k < f->k; k++) {
        uint32_t x = mat_a[m][k], y = mat_b[n][k];
        sum += f->a == TILE_B1 ? (int64_t)(f->popc_and ? x & y : x ^ y)
                               : (int64_t)integer(x, f->a) * integer(y, f->b);
    }
    if (f->saturate)
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    return (int32_t)(uint32_t)(uint64_t)sum;
}
/* 8-bit floats on sm_90: two products of halves from zero, and C afterwards. */
static uint32_t expect_as_halves(const struct tile_mma *f, unsigned m, unsigned n) {
    struct tile_model model = tile_model_of(90, TILE_F16, false);
    uint32_t half = 0, c = mat_c[m][n];
    float sum = 0;
    for (unsigned part = 0; part < 2; part++) {
        uint32_t x[16], y[16];
        for (unsigned i = 0; i < f->k / 2u; i++) {
            unsigned k = i / 2 * 4 + 2 * part + i % 2;
            int man_a = f->a == TILE_E4M3 ? 3 : 2, man_b = f->b == TILE_E4M3 ? 3 : 2;
            x[i] = float_to_half(float_of_eight(mat_a[m][k], man_a));
            y[i] = float_to_half(float_of_eight(mat_b[n][k], man_b));
        }
        if (f->d == TILE_F16)
            half = tile_dot_f16(&scratch, &model, TILE_F16, TILE_F16, x, y, f->k / 2u, half);
        else
            sum = tile_dot_f32(&scratch, &model, TILE_F16, TILE_F16, x, y, f->k / 2u, sum);
    }
    return f->d == TILE_F16 ? h_add(half, c) : bits_of(f_add(sum, float_of(c)));
}
static uint32_t expect(const struct tile_mma *f, unsigned m, unsigned n) {
    if (f->d == TILE_S32)
        return (uint32_t)expect_int(f, m, n);
    if (f->as_halves)
        return expect_as_halves(f, m, n);
    if (f->d == TILE_F16)
        return tile_dot_f16(&scratch, &f->model, f->a, f->b, mat_a[m], mat_b[n], f->k, mat_c[m][n]);
    return bits_of(tile_dot_f32(&scratch, &f->model, f->a, f->b, mat_a[m], mat_b[n], f->k,
                                float_of(mat_c[m][n])));
}

static void run_form(size_t i, unsigned sm, enum hw_dist dist) {
    struct tile_mma f;
    const char *why = "";
    bool ok = parse(forms[i].text, sm, &f, &why);
    CHECKF(ok, "%s: %s", forms[i].text, why);
    if (!ok)
        return;
    const void *a[8], *b[8], *c[8];
    void *d[8];
    for (int r = 0; r < 8; r++)
        a[r] = regs_a[r], b[r] = regs_b[r], c[r] = regs_c[r], d[r] = regs_d[r];
    fill(regs_a, f.na, f.a, dist, 3 * i + 100 * dist);
    fill(regs_b, f.nb, f.b, dist, 3 * i + 100 * dist + 1);
    fill(regs_c, f.nc, f.c, dist, 3 * i + 100 * dist + 2);
    for (unsigned lane = 0; lane < 32; lane++) {
        for (unsigned v = 0; v < f.m * f.k / 32u; v++) {
            unsigned at = cute_at(&forms[i].a, lane, v);
            mat_a[at % f.m][at / f.m] = element(regs_a, f.a, lane, v);
        }
        for (unsigned v = 0; v < f.n * f.k / 32u; v++) {
            unsigned at = cute_at(&forms[i].b, lane, v);
            mat_b[at % f.n][at / f.n] = element(regs_b, f.b, lane, v);
        }
        for (unsigned v = 0; v < f.m * f.n / 32u; v++) {
            unsigned at = cute_at(&forms[i].c, lane, v);
            mat_c[at % f.m][at / f.m] = element(regs_c, f.c, lane, v);
        }
    }
    memset(regs_d, 0xa5, sizeof regs_d);
    tile_mma_run(&f, &scratch, d, a, b, c);
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned v = 0; v < f.m * f.n / 32u; v++) {
            unsigned at = cute_at(&forms[i].c, lane, v);
            mat_d[at % f.m][at / f.m] = element(regs_d, f.d, lane, v);
        }
    for (unsigned m = 0; m < f.m; m++)
        for (unsigned n = 0; n < f.n; n++)
            CHECKF(mat_d[m][n] == expect(&f, m, n), "%s sm_%u dist %d (%u, %u): %08x, not %08x",
                   forms[i].text, sm, dist, m, n, mat_d[m][n], expect(&f, m, n));
}

static void test_fragments(void) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int dist = 0; dist < HW_DISTS; dist++) {
            run_form(i, 90, (enum hw_dist)dist);
            if (!strstr(forms[i].text, "e4m3"))
                run_form(i, 80, (enum hw_dist)dist);
        }
}

/* The definition again, by shifting integer significands. */
static float dot_by_shifting(const struct tile_model *m, const uint32_t *a, const uint32_t *b,
                             unsigned n, uint32_t c) {
    int64_t sig[33];
    int exp[33], top = -126; /* value = sig * 2^(exp - 46) */
    for (unsigned i = 0; i < n; i++) {
        int ea = a[i] >> 10 & 31, eb = b[i] >> 10 & 31;
        int64_t sa = (a[i] & 1023) | (ea ? 1024 : 0), sb = (b[i] & 1023) | (eb ? 1024 : 0);
        exp[i] = (ea ? ea : 1) + (eb ? eb : 1) - 30;
        sig[i] = (sa * sb << 26) * ((a[i] ^ b[i]) & 0x8000 ? -1 : 1);
        if (sig[i] && exp[i] > top)
            top = exp[i];
    }
    int ec = c >> 23 & 255;
    exp[n] = (ec ? ec : 1) - 127;
    sig[n] = (int64_t)((c & 0x7fffff) | (ec ? 0x800000 : 0)) << 23;
    sig[n] = c >> 31 ? -sig[n] : sig[n];
    if (sig[n] && exp[n] > top)
        top = exp[n];
    int64_t sum = 0;
    for (unsigned i = 0; i <= n; i++) {
        int shift = 46 - m->frac + (top - exp[i]);
        int64_t mag = sig[i] < 0 ? -sig[i] : sig[i];
        mag = shift > 62 ? 0 : mag >> shift;
        sum += sig[i] < 0 ? -mag : mag;
    }
    uint64_t mag = (uint64_t)(sum < 0 ? -sum : sum);
    int last = top - m->frac; /* of the last bit */
    while (mag >= 1u << (m->out + 1)) {
        mag >>= 1;
        last++;
    }
    float r = (float)ldexp((double)mag, last);
    return sum < 0 ? -r : r;
}

static void test_definition(void) {
    static const unsigned targets[] = {80, 90};
    for (unsigned trial = 0; trial < 4000; trial++) {
        struct tile_model m = tile_model_of(targets[trial & 1], TILE_F16, false);
        enum hw_dist dist = (enum hw_dist)(trial / 2 % 4); /* finite ones */
        uint32_t a[16], b[16], c = hw_word(trial, HW_F32, dist == HW_WIDE ? HW_NORMAL : dist, 99);
        for (unsigned i = 0; i < m.block; i++) {
            a[i] = hw_word(trial, HW_F16, dist, i) & 0xffff;
            b[i] = hw_word(trial, HW_F16, dist, i + 50) & 0xffff;
        }
        float got = tile_dot_f32(&scratch, &m, TILE_F16, TILE_F16, a, b, m.block, float_of(c));
        float want = dot_by_shifting(&m, a, b, m.block, c);
        CHECKF(bits_of(got) == bits_of(want), "trial %u: %08x, not %08x", trial, bits_of(got),
               bits_of(want));
    }
}

/* 2^-n as a half; sums by hand: one at 1, others below. */
static void test_cutoff(void) {
    static const struct {
        const char *name;
        unsigned sm;
        uint32_t other; /* a second product: this times 2^-14 */
        float c, want;
    } rows[] = {
        {"Hopper keeps 25 bits below the largest", 90, 0x1000, 0x1.8p-24f, 1.0f + 0x1p-23f},
        {"and cuts off the 26th", 90, 0x0c00, 0x1.8p-24f, 1.0f},
        {"Ampere cuts off the 25th", 80, 0x1000, 0x1.8p-24f, 1.0f},
        {"a negative rest cuts towards zero", 90, 0, -0x1p-25f, 1.0f - 0x1p-24f},
        {"and is lost below", 90, 0, -0x1p-26f, 1.0f},
        {"an accumulator rules the alignment too", 90, 0, 0x1p30f, 0x1p30f},
        {"it is cut off itself", 90, 0, 0x1.fffffep-3f, 1.25f - 0x1p-23f},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tile_model m = tile_model_of(rows[i].sm, TILE_F16, false);
        uint32_t a[4] = {0x3c00, rows[i].other, 0, 0}, b[4] = {0x3c00, 0x0400, 0, 0};
        float got = tile_dot_f32(&scratch, &m, TILE_F16, TILE_F16, a, b, 4, rows[i].c);
        CHECKF(got == rows[i].want, "%s: %a, not %a", rows[i].name, (double)got,
               (double)rows[i].want);
    }
}

static void test_specials(void) {
    struct tile_model m = tile_model_of(90, TILE_F16, false);
    static const struct {
        uint32_t a, b;
        float c;
        uint32_t want;
    } rows[] = {
        {0x7c00, 0x3c00, 1.0f, 0x7f800000},
        {0xfc00, 0x3c00, 1.0f, 0xff800000},
        {0x7c00, 0x0000, 1.0f, 0x7fffffff},
        {0x7e00, 0x3c00, 1.0f, 0x7fffffff},
        {0x7c00, 0x3c00, -INFINITY, 0x7fffffff},
        {0x3c00, 0x3c00, INFINITY, 0x7f800000},
        {0x0000, 0x8000, -0.0f, 0},
        {0x3c00, 0x3c00, NAN, 0x7fffffff},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float got =
            tile_dot_f32(&scratch, &m, TILE_F16, TILE_F16, &rows[i].a, &rows[i].b, 1, rows[i].c);
        CHECKF(bits_of(got) == rows[i].want, "row %zu: %08x", i, bits_of(got));
    }
    uint32_t big = 0x7f7f, nan8 = 0x7f, one8 = 0x38; /* bf16's largest; e4m3 */
    struct tile_model mb = tile_model_of(90, TILE_BF16, false);
    CHECK(isinf(tile_dot_f32(&scratch, &mb, TILE_BF16, TILE_BF16, &big, &big, 1, 0.0f)));
    CHECK(isnan(tile_dot_f32(&scratch, &mb, TILE_E4M3, TILE_E4M3, &nan8, &one8, 1, 0.0f)));
    uint32_t top8 = 0x7e; /* 448: the format has no infinity */
    CHECK(tile_dot_f32(&scratch, &mb, TILE_E4M3, TILE_E4M3, &top8, &one8, 1, 0.0f) == 448.0f);
}

/* The two engines on the same tile. */
/* Rows of zeros against a column with a NaN and one with an infinity: neither disappears. */
static void test_zero_times_special(void) {
    static struct tile_scratch s;
    static uint32_t d[4][32];
    uint16_t nan = 0x7fc0, inf = 0x7f80;
    float one = 1;
    void *regs[4] = {d[0], d[1], d[2], d[3]};
    memcpy(s.packed_b, &nan, 2);
    memcpy(s.packed_b + TILE_ROW_BYTES + 6, &inf, 2);
    for (unsigned i = 0; i < 4 * 32; i++)
        memcpy(&d[i / 32][i % 32], &one, 4);
    struct tile_job j = {.s = &s,
                         .model = tile_model_of(90, TILE_BF16, true),
                         .k = 16,
                         .rows = 16,
                         .strips = 1,
                         .halves = 2,
                         .d = regs,
                         .c = (const void *const *)regs};
    const struct tile_engine *e = tile_engine_get();
    e->unpack_a(&s, TILE_BF16, 16, 16);
    e->unpack_b(&s, TILE_BF16, 8, 16);
    e->floats(&j);
    for (unsigned i = 0; i < 4 * 32; i++) { /* column 2 (lane % 4) + register % 2 */
        bool special = i % 32 % 4 == 0;
        CHECKF(d[i / 32][i % 32] == (special ? 0x7fffffffu : bits_of(one)), "%u: %08x", i,
               d[i / 32][i % 32]);
    }
}

static void test_engines(void) {
#if defined(__x86_64__)
    static struct tile_scratch s[2];
    static uint32_t d[2][8][32];
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        SKIP("this CPU has no AVX2");
    const struct tile_engine *e[2] = {&tile_engine_any, &tile_engine_x86v3};
    static const enum tile_type types[] = {TILE_F16, TILE_BF16, TILE_E4M3, TILE_E5M2};
    for (unsigned trial = 0; trial < 200; trial++)
        for (int x = 0; x < 2; x++) {
            enum tile_type t = types[trial % 4];
            enum hw_type h = t == TILE_F16    ? HW_F16
                             : t == TILE_BF16 ? HW_BF16
                             : t == TILE_E4M3 ? HW_E4M3
                                              : HW_E5M2;
            enum hw_dist dist = (enum hw_dist)(trial / 4 % HW_DISTS);
            void *regs[8];
            for (unsigned i = 0; i < 16 * 8; i++) {
                uint32_t wa = hw_word(trial, h, dist, i), wb = hw_word(trial, h, dist, i + 999);
                memcpy(s[x].packed_a + 4 * i, &wa, 4);
                if (i < 8 * 8)
                    memcpy(s[x].packed_b + 4 * i, &wb, 4);
            }
            for (unsigned r = 0; r < 8; r++) {
                regs[r] = d[x][r];
                for (unsigned lane = 0; lane < 32; lane++)
                    d[x][r][lane] = hw_word(trial, HW_F32, dist, r * 32 + lane + 5000);
            }
            unsigned k = 256 / tile_type_bits(t);
            struct tile_job j = {.s = &s[x],
                                 .model = tile_model_of(90, t, true),
                                 .k = k,
                                 .rows = 16,
                                 .strips = 1,
                                 .halves = 2,
                                 .d = regs,
                                 .c = (const void *const *)regs,
                                 .half = trial & 8,
                                 .half_c = trial & 8};
            e[x]->unpack_a(&s[x], t, 16, k);
            e[x]->unpack_b(&s[x], t, 8, k);
            e[x]->floats(&j);
            CHECKF(x == 0 || memcmp(d[0], d[1], sizeof d[0]) == 0, "trial %u", trial);
        }
#else
    SKIP("one engine on this CPU");
#endif
}

static void test_doubles(void) {
    static double a[8][32], b[4][32], c[4][32], d[4][32];
    struct tile_mma f;
    const char *why;
    CHECK(parse("sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", 90, &f, &why));
    CHECK(f.na == 8 && f.nb == 4 && f.nc == 4);
    const void *pa[8], *pb[4], *pc[4];
    void *pd[4];
    double ma[16][16], mb[16][8], mc[16][8];
    for (unsigned r = 0; r < 8; r++) {
        pa[r] = a[r];
        if (r < 4)
            pb[r] = b[r], pc[r] = c[r], pd[r] = d[r];
        for (unsigned lane = 0; lane < 32; lane++) {
            unsigned g = lane / 4, t = lane % 4;
            a[r][lane] = double_of(hw_double(1, HW_NORMAL, r * 32 + lane));
            ma[g + r % 2 * 8][t + r / 2 * 4] = a[r][lane];
            if (r < 4) {
                b[r][lane] = double_of(hw_double(2, HW_NORMAL, r * 32 + lane));
                c[r][lane] = double_of(hw_double(3, HW_NORMAL, r * 32 + lane));
                mb[t + r * 4][g] = b[r][lane];
                mc[g + r / 2 * 8][2 * t + r % 2] = c[r][lane];
            }
        }
    }
    tile_mma_run(&f, &scratch, pd, pa, pb, pc);
    for (unsigned r = 0; r < 4; r++)
        for (unsigned lane = 0; lane < 32; lane++) {
            unsigned m = lane / 4 + r / 2 * 8, n = 2 * (lane % 4) + r % 2;
            double sum = mc[m][n];
            for (unsigned k = 0; k < 16; k++)
                sum = fma(ma[m][k], mb[k][n], sum);
            CHECK(d[r][lane] == sum);
        }
}

/* Four products of their own; layouts from mma_traits_sm70.hpp. */
static void test_quads(void) {
    struct tile_mma f;
    const char *why;
    CHECK(parse("sync.aligned.m8n8k4.col.row.f32.f16.f16.f32", 80, &f, &why));
    CHECK(f.quads && f.na == 2 && f.nb == 2 && f.nc == 8 && f.nd == 8);
    const void *a[8], *b[8], *c[8];
    void *d[8];
    for (int r = 0; r < 8; r++)
        a[r] = regs_a[r], b[r] = regs_b[r], c[r] = regs_c[r], d[r] = regs_d[r];
    fill(regs_a, 2, TILE_F16, HW_NORMAL, 1);
    fill(regs_b, 2, TILE_F16, HW_NORMAL, 2);
    fill(regs_c, 8, TILE_F32, HW_NORMAL, 3);
    tile_mma_run(&f, &scratch, d, a, b, c);
    for (unsigned q = 0; q < 4; q++)
        for (unsigned thread = 0; thread < 8; thread++)
            for (unsigned v = 0; v < 8; v++) {
                unsigned lane = 4 * q + thread % 4 + thread / 4 * 16;
                unsigned at = thread % 2 + thread / 2 % 2 * 16 + thread / 4 * 4 + v % 2 * 8 +
                              v / 2 % 2 * 2 + v / 4 * 32;
                uint32_t ra[4], rb[4];
                for (unsigned k = 0; k < 4; k++) { /* Col: (4,2),4:(8,4),1 */
                    unsigned la = 4 * q + k + at % 8 / 4 * 16, lb = 4 * q + k + at / 8 / 4 * 16;
                    ra[k] = element(regs_a, TILE_F16, la, at % 4);
                    rb[k] = element(regs_b, TILE_F16, lb, at / 8 % 4);
                }
                float want = 0; /* as it is compiled: single precision, C last */
                for (unsigned k = 0; k < 4; k++)
                    want = fmaf(half_to_float(ra[k]), half_to_float(rb[k]), want);
                CHECK(regs_d[v][lane] == bits_of(want + float_of(regs_c[v][lane])));
            }
}

static void test_parse(void) {
    static const struct {
        const char *text;
        unsigned sm;
        bool ok;
    } rows[] = {
        {"sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 80, true},
        {"sync.aligned.m16n8k16.row.col.f16.f16.f16.f32", 80, false},
        {"sync.aligned.m16n8k16.col.col.f32.f16.f16.f32", 80, false},
        {"sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 90, false},
        {"sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16", 90, false},
        {"sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", 80, false},
        {"sync.aligned.m16n8k32.row.col.f32.e4m3.s8.f32", 90, false},
        {"sync.aligned.m16n8k4.row.col.f64.f64.f64.f64.rz", 80, false},
        {"sync.aligned.m16n8k4.row.col.f64.f64.f64.f64.rz", 90, true},
        {"sync.aligned.m16n8k256.row.col.s32.b1.b1.s32", 90, false},
        {"sync.aligned.m8n8k4.row.col.f32.f16.f16.f16", 90, true},
        {"sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32", 90, false},
        {"sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 90, false},
        {"sync.aligned.row.col.f32.f16.f16.f32", 90, false},
        {"sync.aligned.m16n8k16.row.col.satfinite.nonsense.s32.s8.s8.s32", 90, false},
        {"sync.aligned.m16n8k16.row.col.f32.f16.f16.f32.f32", 90, false},
        {"", 90, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tile_mma f;
        const char *why = NULL;
        bool ok = parse(rows[i].text, rows[i].sm, &f, &why);
        CHECKF(ok == rows[i].ok, "%s: %s", rows[i].text, why ? why : "");
        CHECKF(ok || why, "%s: refused without words", rows[i].text);
    }
}

/* wmma: load, multiply and store matrices of memory, in every order. */
static void wmma_move(const char *text, uint8_t *memory, uint32_t stride, uint32_t (*regs)[32],
                      bool store) {
    struct tile_fragment f;
    const char *why = "";
    str mods[16];
    size_t n = split(text, mods);
    bool ok = tile_fragment_parse(mods, n, &f, &why);
    CHECKF(ok, "%s: %s", text, why);
    for (unsigned r = 0; ok && r < f.nregs; r++)
        for (unsigned p = 0; p < f.pieces; p++) {
            int64_t at[32];
            tile_fragment_offsets(&f, r, p, stride, at);
            for (unsigned lane = 0; lane < 32; lane++) {
                uint8_t *reg = (uint8_t *)&regs[r][lane] + p * f.piece_bytes;
                if (store)
                    memcpy(memory + at[lane], reg, f.piece_bytes);
                else
                    memcpy(reg, memory + at[lane], f.piece_bytes);
            }
        }
}

static void run_wmma(const char *shape, unsigned m, unsigned n, unsigned k, bool a_col, bool b_col,
                     bool d_col) {
    static uint16_t ma[32 * 16], mb[16 * 32];
    static float mc[32 * 32], md[32 * 32];
    char text[96];
    for (unsigned i = 0; i < m * k; i++)
        ma[i] = (uint16_t)hw_word(7, HW_F16, HW_NORMAL, i);
    for (unsigned i = 0; i < k * n; i++)
        mb[i] = (uint16_t)hw_word(8, HW_F16, HW_NORMAL, i);
    for (unsigned i = 0; i < m * n; i++)
        mc[i] = float_of(hw_word(9, HW_F32, HW_NORMAL, i));
    snprintf(text, sizeof text, "load.a.sync.aligned.%s.%s.global.f16", a_col ? "col" : "row",
             shape);
    wmma_move(text, (uint8_t *)ma, 0, regs_a, false);
    snprintf(text, sizeof text, "load.b.sync.aligned.%s.%s.shared.f16", b_col ? "col" : "row",
             shape);
    wmma_move(text, (uint8_t *)mb, 0, regs_b, false);
    snprintf(text, sizeof text, "load.c.sync.aligned.row.%s.f32", shape);
    wmma_move(text, (uint8_t *)mc, n, regs_c, false);
    str mods[16];
    struct tile_mma f;
    const char *why = "";
    snprintf(text, sizeof text, "mma.sync.aligned.%s.%s.%s.f32.f32", a_col ? "col" : "row",
             b_col ? "col" : "row", shape);
    bool ok = tile_wmma_parse(mods, split(text, mods), 90, &f, &why);
    CHECKF(ok, "%s: %s", text, why);
    if (!ok)
        return;
    const void *a[8], *b[8], *c[8];
    void *d[8];
    for (int r = 0; r < 8; r++)
        a[r] = regs_a[r], b[r] = regs_b[r], c[r] = regs_c[r], d[r] = regs_d[r];
    tile_mma_run(&f, &scratch, d, a, b, c);
    snprintf(text, sizeof text, "store.d.sync.aligned.%s.%s.global.f32", d_col ? "col" : "row",
             shape);
    wmma_move(text, (uint8_t *)md, 0, regs_d, true);
    for (unsigned i = 0; i < m; i++)
        for (unsigned j = 0; j < n; j++) {
            uint32_t ra[16], rb[16];
            for (unsigned x = 0; x < k; x++) {
                ra[x] = ma[a_col ? x * m + i : i * k + x];
                rb[x] = mb[b_col ? j * k + x : x * n + j];
            }
            float want =
                tile_dot_f32(&scratch, &f.model, TILE_F16, TILE_F16, ra, rb, k, mc[i * n + j]);
            CHECKF(md[d_col ? j * m + i : i * n + j] == want, "%s (%u, %u)", text, i, j);
        }
}

static void test_wmma(void) {
    for (unsigned o = 0; o < 8; o++) {
        run_wmma("m16n16k16", 16, 16, 16, o & 1, o & 2, o & 4);
        run_wmma("m8n32k16", 8, 32, 16, o & 1, o & 2, o & 4);
        run_wmma("m32n8k16", 32, 8, 16, o & 1, o & 2, o & 4);
    }
}

static void test_fragment_counts(void) {
    static const struct {
        const char *text;
        unsigned regs; /* as ptxas wants them; 0: refused */
    } rows[] = {
        {"load.a.sync.aligned.row.m16n16k16.global.f16", 8},
        {"load.b.sync.aligned.row.m16n16k16.global.bf16", 4},
        {"load.b.sync.aligned.row.m8n32k16.global.f16", 8},
        {"load.b.sync.aligned.row.m8n32k16.global.bf16", 8},
        {"load.a.sync.aligned.row.m8n32k16.global.bf16", 2},
        {"load.c.sync.aligned.row.m16n16k16.global.f16", 4},
        {"load.c.sync.aligned.row.m16n16k8.global.f32", 8},
        {"load.a.sync.aligned.row.m16n16k8.global.tf32", 4},
        {"load.a.sync.aligned.row.m16n16k16.global.s8", 2},
        {"load.a.sync.aligned.row.m8n32k16.shared.u8", 1},
        {"load.b.sync.aligned.col.m8n32k16.shared.u8", 4},
        {"load.a.sync.aligned.row.m8n8k32.global.s4", 1},
        {"load.a.sync.aligned.row.m8n8k128.global.b1", 1},
        {"load.a.sync.aligned.row.m8n8k4.global.f64", 1},
        {"store.d.sync.aligned.col.m8n8k4.global.f64", 2},
        {"load.a.sync.aligned.col.m8n8k32.global.s4", 0},
        {"load.a.sync.aligned.row.m8n8k32.global.f16", 0},
        {"load.a.sync.aligned.row.global.f16", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tile_fragment f;
        const char *why;
        str mods[16];
        bool ok = tile_fragment_parse(mods, split(rows[i].text, mods), &f, &why);
        CHECKF(ok == (rows[i].regs != 0) && (!ok || f.nregs == rows[i].regs), "%s: %u",
               rows[i].text, ok ? f.nregs : 0);
    }
}

static const struct tap_case cases[] = {
    {"every form's fragments are CUTLASS's, its sums the definition's", test_fragments},
    {"the definition, by shifting integers", test_definition},
    {"where sums are cut off", test_cutoff},
    {"NaN, infinities, the ends of formats", test_specials},
    {"zero times NaN, zero times infinity", test_zero_times_special},
    {"both engines give equal bits", test_engines},
    {"doubles are chains of fused multiply-adds", test_doubles},
    {"mma.m8n8k4: four products of quad pairs", test_quads},
    {"suffixes: what exists and what is refused", test_parse},
    {"wmma: load, multiply, store in every order", test_wmma},
    {"wmma: registers of fragments", test_fragment_counts},
};
TAP_CASES(cases)
