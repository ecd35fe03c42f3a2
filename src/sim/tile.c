/* Types of elements, the sum of a tensor core by its definition, and the instructions that move and
 * multiply matrices (tile.h). */
#include "sim/tile.h"
#include "sim/lane_math.h"
#include "sim/tile_engine.h"
#include "sim/tile_tma.h"
#include "target/gpu.h"
#include <fenv.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t bits;
} types[] = {
#define X(id, name, bits) {name, bits},
    TILE_TYPES(X)
#undef X
};

unsigned tile_type_bits(enum tile_type t) {
    return t < TILE_NO_TYPE ? types[t].bits : 0;
}
enum tile_type tile_type_find(str name) {
    unsigned t = 0;
    while (t < TILE_NO_TYPE && !str_is(name, types[t].name))
        t++;
    return (enum tile_type)t;
}

/* By the architecture (target/arch.def) and tests/sim/hardware. Where mma.sync has no 8-bit floats
 * of its own, they are widened to halves and multiplied in blocks of 16. */
struct tile_model tile_model_of(unsigned sm, enum tile_type factor, bool wgmma) {
    const struct arch *arch = arch_of((int)sm), *a = arch ? arch : arch_of(80);
    bool eight = factor == TILE_E4M3 || factor == TILE_E5M2;
    bool own = eight && (wgmma || !a->fp8_as_halves);
    int bits = own ? a->fp8_sum_bits : a->has.sum_bits;
    int block = factor == TILE_TF32 ? a->sum_terms / 2 : !eight ? a->sum_terms : wgmma ? 32 : 16;
    return (struct tile_model){
        .block = (uint8_t)block, .frac = (uint8_t)bits, .out = (uint8_t)(bits < 23 ? bits : 23)};
}

/* The value of a sum in which an infinity or a NaN takes part. */
static double special_sum(unsigned n, const float *a, const float *b, unsigned step, float c) {
    double sum = c;
    for (unsigned i = 0; i < n; i++) {
        double p = (double)a[i] * b[i * step];
        if (p != p || isinf(p))
            sum += p;
    }
    return sum == sum && !isinf(sum) ? 0.0 : sum;
}

/* v·2^e, rounded like ldexp's: exponents here lie far inside those of normal doubles. */
static inline double scaled(double v, int e) {
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return v * power;
}

double tile_dot_exact(const struct tile_model *m, unsigned n, const float *a, const int32_t *ae,
                      const float *b, const int32_t *be, unsigned step, float c, int32_t ce) {
    int32_t top = ce;
    for (unsigned i = 0; i < n; i++) {
        int32_t e = ae[i] + be[i * step];
        if (ae[i] == TILE_SPECIAL || be[i * step] == TILE_SPECIAL)
            top = TILE_SPECIAL;
        else if (ae[i] != TILE_ZERO && be[i * step] != TILE_ZERO && e > top)
            top = e;
    }
    if (top >= TILE_SPECIAL)
        return special_sum(n, a, b, step, c);
    if (top == TILE_ZERO)
        return 0.0;
    int64_t sum = (int64_t)scaled(c, m->frac - top);
    for (unsigned i = 0; i < n; i++)
        sum += (int64_t)scaled((double)a[i] * b[i * step], m->frac - top);
    return scaled((double)sum, top - m->frac);
}

float tile_round_f32(const struct tile_model *m, double sum) {
    if (sum != sum)
        return float_of(0x7fffffffu);
    int e;
    frexp(sum, &e); /* 2^(e-1) <= |sum| < 2^e */
    if (isinf(sum) || e > 128)
        return sum > 0 ? INFINITY : -INFINITY;
    int last = (e - 1 < -126 ? -126 : e - 1) - m->out;           /* exponent of the last bit kept */
    return (float)scaled(trunc(scaled(sum, -last)) + 0.0, last); /* a zero has no sign */
}
static uint32_t tile_round_f16(double sum) {
    uint32_t h = sum == sum ? double_to_half(sum) : 0x7fffu;
    return h == 0x8000u ? 0 : h;
}

/* A few operands at a time, through the same unpacking as everybody's. */
static double dot_bits(struct tile_scratch *s, const struct tile_model *m, enum tile_type ta,
                       enum tile_type tb, const uint32_t *a, const uint32_t *b, unsigned n, float c,
                       int32_t ce) {
    unsigned wa = tile_type_bits(ta) / 8, wb = tile_type_bits(tb) / 8;
    for (unsigned i = 0; i < n; i++) {
        memcpy(s->packed_a + i * wa, a + i, wa);
        memcpy(s->packed_b + i * wb, b + i, wb);
    }
    memset(s->packed_b + TILE_ROW_BYTES, 0, 7 * TILE_ROW_BYTES);
    s->known_rows = 0;
    tile_engine_any.unpack_a(s, ta, 1, n);
    tile_engine_any.unpack_b(s, tb, 8, n);
    float fa[TILE_MAX_K], fb[8 * TILE_MAX_K];
    memcpy(fa, s->a, n * sizeof *fa);
    memcpy(fb, s->b, 8 * n * sizeof *fb);
    return tile_dot_exact(m, n, fa, s->ae, fb, s->be, 8, c, ce);
}

static int32_t exponent_f32(float f, int32_t least) {
    uint32_t mag = bits_of(f) & 0x7fffffffu;
    int32_t e = (int32_t)(mag >> 23) - 127;
    return mag == 0 ? TILE_ZERO : mag >= 0x7f800000u ? TILE_SPECIAL : e < least ? least : e;
}

float tile_dot_f32(struct tile_scratch *s, const struct tile_model *m, enum tile_type ta,
                   enum tile_type tb, const uint32_t *a, const uint32_t *b, unsigned k, float c) {
    for (unsigned at = 0; at < k; at += m->block) {
        unsigned n = k - at < m->block ? k - at : m->block;
        c = tile_round_f32(m, dot_bits(s, m, ta, tb, a + at, b + at, n, c, exponent_f32(c, -126)));
    }
    return c;
}
uint32_t tile_dot_f16(struct tile_scratch *s, const struct tile_model *m, enum tile_type ta,
                      enum tile_type tb, const uint32_t *a, const uint32_t *b, unsigned k,
                      uint32_t c) {
    for (unsigned at = 0; at < k; at += m->block) {
        unsigned n = k - at < m->block ? k - at : m->block;
        float f = half_to_float(c);
        c = tile_round_f16(dot_bits(s, m, ta, tb, a + at, b + at, n, f, exponent_f32(f, -14)));
    }
    return c;
}

/* ---- ldmatrix, stmatrix, movmatrix ----
 *
 * Lane l holds elements 2 (l % 4) and the next of row l / 4; of a
 * transposed matrix, of column l / 4. */

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

/* ---- mma.sync and wmma: from suffixes to forms, from registers to packed rows and back ----
 *
 * All layouts but one are the same: with g = lane / 4 and t = lane % 4, the 16 bytes that lanes
 * 4g … 4g+3 hold of a register of A are 16 consecutive bytes of row g (plus 8 for the second
 * register of a 16-row block), those of a register of B are of column g, and the accumulators are
 * columns 2t and 2t+1 of row g. The one is mma.m8n8k4 of halves, Volta's, at the end. */

#define PIECE 16u

struct words { /* of the suffixes */
    bool have_shape, sp, saturate, popc, and_op, xor_op;
    uint16_t m, n, k;
    enum tile_type type[4];
    unsigned ntypes;
    unsigned major[2], nmajor; /* 0 row, 1 col */
    int round;                 /* -1: not given */
};

static bool read_number(str *s, char letter, uint16_t *out) {
    unsigned v = 0;
    size_t i = 1;
    if (s->n < 2 || s->p[0] != letter)
        return false;
    while (i < s->n && i < 5 && s->p[i] >= '0' && s->p[i] <= '9')
        v = v * 10 + (unsigned)(s->p[i++] - '0');
    *s = str_from(*s, i);
    *out = (uint16_t)v;
    return i > 1;
}
static bool read_shape(str s, struct words *w) {
    return read_number(&s, 'm', &w->m) && read_number(&s, 'n', &w->n) &&
           read_number(&s, 'k', &w->k) && s.n == 0;
}

static bool read_word(str s, struct words *w) {
    static const char *const rounds[] = {"rn", "rz", "rm", "rp"};
    enum tile_type t = tile_type_find(s);
    if (t != TILE_NO_TYPE) {
        if (w->ntypes == 4)
            return false;
        w->type[w->ntypes++] = t;
        return true;
    }
    if (str_is(s, "row") || str_is(s, "col")) {
        if (w->nmajor == 2)
            return false;
        w->major[w->nmajor++] = str_is(s, "col");
        return true;
    }
    for (int i = 0; i < 4; i++)
        if (str_is(s, rounds[i])) {
            w->round = i;
            return true;
        }
    if (!w->have_shape && read_shape(s, w)) {
        w->have_shape = true;
        return true;
    }
    bool sp = str_starts(s, S("sp")), saturate = str_is(s, "satfinite"), popc = str_is(s, "popc");
    bool and_op = str_is(s, "and"), xor_op = str_is(s, "xor");
    w->sp |= sp;
    w->saturate |= saturate;
    w->popc |= popc;
    w->and_op |= and_op;
    w->xor_op |= xor_op;
    return sp || saturate || popc || and_op || xor_op || str_is(s, "sync") ||
           str_is(s, "aligned") || str_is(s, "mma");
}

static bool read_words(const str *mods, size_t n, struct words *w, const char **why) {
    *w = (struct words){.round = -1};
    for (size_t i = 0; i < n; i++)
        if (!read_word(mods[i], w)) {
            *why = "a suffix that mma.sync does not have here";
            return false;
        }
    if (w->sp)
        *why = "sparse matrix products are not supported; use the dense form";
    else if (!w->have_shape)
        *why = "the shape is missing, such as m16n8k16";
    else
        return true;
    return false;
}

/* What exists: by factors, accumulator and shape. `sm` is the least architecture of the PTX ISA. */
struct shape {
    uint8_t m, n;
    uint16_t k;
    uint8_t sm;
};
static const struct shape f16_shapes[] = {{16, 8, 8, 75}, {16, 8, 16, 80}, {0}};
static const struct shape bf16_shapes[] = {{16, 8, 8, 80}, {16, 8, 16, 80}, {0}};
static const struct shape tf32_shapes[] = {{16, 8, 4, 80}, {16, 8, 8, 80}, {0}};
static const struct shape fp8_shapes[] = {{16, 8, 16, 89}, {16, 8, 32, 89}, {0}};
static const struct shape int8_shapes[] = {{8, 8, 16, 75}, {16, 8, 16, 80}, {16, 8, 32, 80}, {0}};
static const struct shape int4_shapes[] = {{8, 8, 32, 75}, {16, 8, 32, 80}, {16, 8, 64, 80}, {0}};
static const struct shape b1_shapes[] = {{8, 8, 128, 75}, {16, 8, 128, 80}, {16, 8, 256, 80}, {0}};
static const struct shape f64_shapes[] = {
    {8, 8, 4, 80}, {16, 8, 4, 90}, {16, 8, 8, 90}, {16, 8, 16, 90}, {0}};
static const struct shape wmma16_shapes[] = {
    {16, 16, 16, 70}, {8, 32, 16, 70}, {32, 8, 16, 70}, {0}};
static const struct shape wmma_tf32_shapes[] = {{16, 16, 8, 80}, {0}};
static const struct shape wmma_f64_shapes[] = {{8, 8, 4, 80}, {0}};
static const struct shape wmma_int4_shapes[] = {{8, 8, 32, 75}, {0}};
static const struct shape wmma_b1_shapes[] = {{8, 8, 128, 75}, {0}};

static const struct shape *shapes_of(enum tile_type t, bool wmma) {
    switch (t) {
    case TILE_F16:
        return wmma ? wmma16_shapes : f16_shapes;
    case TILE_BF16:
        return wmma ? wmma16_shapes : bf16_shapes;
    case TILE_TF32:
        return wmma ? wmma_tf32_shapes : tf32_shapes;
    case TILE_E4M3:
    case TILE_E5M2:
        return wmma ? NULL : fp8_shapes;
    case TILE_S8:
    case TILE_U8:
        return wmma ? wmma16_shapes : int8_shapes;
    case TILE_S4:
    case TILE_U4:
        return wmma ? wmma_int4_shapes : int4_shapes;
    case TILE_B1:
        return wmma ? wmma_b1_shapes : b1_shapes;
    case TILE_F64:
        return wmma ? wmma_f64_shapes : f64_shapes;
    default:
        return NULL;
    }
}
static bool shape_exists(const struct words *w, enum tile_type t, bool wmma, unsigned sm) {
    const struct shape *s = shapes_of(t, wmma);
    for (; s && s->m; s++)
        if (s->m == w->m && s->n == w->n && s->k == w->k)
            return sm >= s->sm;
    return false;
}

static bool is_int(enum tile_type t) {
    return t == TILE_S8 || t == TILE_U8 || t == TILE_S4 || t == TILE_U4 || t == TILE_B1;
}
static bool factors_match(enum tile_type a, enum tile_type b, bool wmma) {
    bool family = (is_int(a) && is_int(b) && tile_type_bits(a) == tile_type_bits(b)) ||
                  ((a == TILE_E4M3 || a == TILE_E5M2) && (b == TILE_E4M3 || b == TILE_E5M2));
    return a == b || (family && !wmma);
}
static bool accumulators_match(enum tile_type a, enum tile_type c, enum tile_type d, bool mixed) {
    bool half_ok = a == TILE_F16 || a == TILE_E4M3 || a == TILE_E5M2;
    bool float_c = c == TILE_F32 || (c == TILE_F16 && half_ok);
    bool float_d = d == TILE_F32 || (d == TILE_F16 && half_ok);
    if (is_int(a))
        return c == TILE_S32 && d == TILE_S32;
    if (a == TILE_F64)
        return c == TILE_F64 && d == TILE_F64;
    return float_c && float_d && (c == d || mixed);
}

static unsigned registers(unsigned elements, enum tile_type t) {
    return elements * tile_type_bits(t) / SIM_LANES / (t == TILE_F64 ? 64 : 32);
}
static void count_registers(struct tile_mma *f, bool wmma) {
    bool eight = wmma && f->a == TILE_F16; /* always, repeated if need be */
    f->na = (uint8_t)(eight ? 8 : registers(f->m * f->k, f->a));
    f->nb = (uint8_t)(eight ? 8 : registers(f->n * f->k, f->b));
    f->nc = (uint8_t)registers(f->m * f->n, f->c);
    f->nd = (uint8_t)registers(f->m * f->n, f->d);
    if (f->quads) {
        f->na = f->nb = 2;
        f->nc = f->c == TILE_F32 ? 8 : 4;
        f->nd = f->d == TILE_F32 ? 8 : 4;
    }
}

static bool form(const struct words *w, bool wmma, unsigned sm, struct tile_mma *f,
                 const char **why) {
    bool two = wmma && w->ntypes == 2; /* wmma of halves names D and C alone */
    if (w->ntypes != 4 && !two) {
        *why = "it needs the types of D, A, B and C";
        return false;
    }
    *f = (struct tile_mma){.m = (uint8_t)w->m,
                           .n = (uint8_t)w->n,
                           .k = w->k,
                           .d = w->type[0],
                           .a = two ? TILE_F16 : w->type[1],
                           .b = two ? TILE_F16 : w->type[2],
                           .c = two ? w->type[1] : w->type[3],
                           .a_col = w->nmajor > 0 && w->major[0] == 1,
                           .b_row = w->nmajor > 1 && w->major[1] == 0,
                           .saturate = w->saturate,
                           .popc_and = w->and_op,
                           .round = (uint8_t)(w->round < 0 ? 0 : w->round)};
    f->quads = !wmma && f->a == TILE_F16 && w->m == 8 && w->n == 8 && w->k == 4;
    bool order = w->nmajor == 2 && (wmma || f->quads || (!f->a_col && !f->b_row));
    bool bits = f->a != TILE_B1 || (w->popc && w->and_op != w->xor_op);
    if (!f->quads && !shape_exists(w, f->a, wmma, sm))
        *why = "no such shape for these types and this target";
    else if (!factors_match(f->a, f->b, wmma))
        *why = "the types of A and B do not go together";
    else if (!accumulators_match(f->a, f->c, f->d, wmma || (f->quads && f->d == TILE_F32)))
        *why = "the types of C and D do not go with these factors";
    else if (!order)
        *why = "A must be .row and B .col";
    else if (!bits)
        *why = "b1 needs .xor.popc or .and.popc";
    else if (w->saturate && (!is_int(f->a) || f->a == TILE_B1))
        *why = ".satfinite goes with integers only";
    else {
        f->model = tile_model_of(sm, f->a, false);
        const struct arch *arch = arch_of((int)sm);
        bool eight = f->a == TILE_E4M3 || f->a == TILE_E5M2;
        f->as_halves = eight && arch && arch->fp8_as_halves;
        count_registers(f, wmma);
        return true;
    }
    return false;
}

bool tile_mma_parse(const str *mods, size_t n, unsigned sm, struct tile_mma *out,
                    const char **why) {
    struct words w;
    return read_words(mods, n, &w, why) && form(&w, false, sm, out, why);
}
bool tile_wmma_parse(const str *mods, size_t n, unsigned sm, struct tile_mma *out,
                     const char **why) {
    struct words w;
    return read_words(mods, n, &w, why) && form(&w, true, sm, out, why);
}

/* Packed rows of A: blocks of 16 rows (8 in an 8-row matrix), in each the pieces of k, in each
 * the halves of the block. */
static unsigned a_register(const struct tile_mma *f, unsigned half, unsigned piece,
                           unsigned pieces) {
    unsigned in_block = f->m == 8 ? 1 : 2;
    return (half / in_block * pieces + piece) * in_block + half % in_block;
}

static void pack(const struct tile_mma *f, struct tile_scratch *s, const void *const *a,
                 const void *const *b) {
    unsigned pieces = f->k * tile_type_bits(f->a) / 8 / PIECE;
    for (unsigned half = 0; half < f->m / 8u; half++)
        for (unsigned p = 0; p < pieces; p++) {
            const char *from = a[a_register(f, half, p, pieces)];
            for (unsigned g = 0; g < 8; g++)
                memcpy(s->packed_a + (half * 8 + g) * TILE_ROW_BYTES + p * PIECE, from + g * PIECE,
                       PIECE);
        }
    for (unsigned strip = 0; strip < f->n / 8u; strip++)
        for (unsigned p = 0; p < pieces; p++) {
            const char *from = b[strip * pieces + p];
            for (unsigned g = 0; g < 8; g++)
                memcpy(s->packed_b + (strip * 8 + g) * TILE_ROW_BYTES + p * PIECE, from + g * PIECE,
                       PIECE);
        }
}

static void run_doubles(const struct tile_mma *f, struct tile_job *j, const void *const *a,
                        const void *const *b) {
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    char *to_a = (char *)j->s->a, *to_b = (char *)j->s->b;
    j->s->known_rows = 0;
    for (unsigned lane = 0; lane < SIM_LANES; lane++) {
        unsigned g = lane / 4, t = lane % 4;
        for (unsigned r = 0; r < f->na; r++) {
            unsigned halves = f->m / 8u, row = g + 8 * (r % halves), k = t + 4 * (r / halves);
            memcpy(to_a + 8 * (row * f->k + k), (const char *)a[r] + 8 * lane, 8);
        }
        for (unsigned r = 0; r < f->nb; r++)
            memcpy(to_b + 8 * ((t + 4 * r) * 8 + 4 * (g & 1) + g / 2),
                   (const char *)b[r] + 8 * lane, 8);
    }
    int mode = fegetround();
    fesetround(modes[f->round & 3]);
    tile_engine_get()->doubles(j);
    fesetround(mode);
}

/* Volta's mma.m8n8k4: lanes 4q … 4q+3 and 16+4q … 16+4q+3 multiply matrices of their own. */
static uint32_t half_at(const void *const *regs, unsigned lane, unsigned i) {
    uint32_t u;
    memcpy(&u, (const char *)regs[i / 2] + 4 * lane, 4);
    return u >> 16 * (i & 1) & 0xffff;
}
static unsigned quad_lane(unsigned q, unsigned thread) {
    return 4 * q + (thread & 3) + (thread & 4) * 4;
}
static void quad_factors(unsigned q, const void *const *regs, bool across, uint32_t (*out)[4]) {
    for (unsigned thread = 0; thread < 8; thread++)
        for (unsigned v = 0; v < 4; v++) {
            uint32_t u = half_at(regs, quad_lane(q, thread), v);
            if (across) /* along m or n */
                out[(thread & 4) + v][thread & 3] = u;
            else
                out[thread][v] = u;
        }
}
static void quad_place(enum tile_type t, unsigned thread, unsigned v, unsigned *row,
                       unsigned *col) {
    bool wide = t == TILE_F32;
    *row = wide ? (thread & 1) + (v & 2) + (thread & 4) : thread;
    *col = wide ? (v & 1) + (thread & 2) + (v & 4) : v;
}
/* After Volta no GPU has this product: the compiler writes it in single precision, in this order
 * (read off the code of ptxas 13.0 for sm_80 and sm_90). */
static float quad_dot_f32(const uint32_t *a, const uint32_t *b, float c) {
    float sum = 0;
    for (unsigned k = 0; k < 4; k++)
        sum = f_fma(half_to_float(a[k]), half_to_float(b[k]), sum);
    return f_add(c, sum);
}
static uint32_t quad_dot_f16(const uint32_t *a, const uint32_t *b, uint32_t c) {
    float sum = half_to_float(c);
    for (unsigned k = 0; k < 4; k += 2) {
        float first = f_mul(half_to_float(a[k]), half_to_float(b[k]));
        sum = f_add(sum, f_fma(half_to_float(a[k + 1]), half_to_float(b[k + 1]), first));
    }
    return float_to_half(sum);
}
static void run_quad(const struct tile_mma *f, unsigned q, void *const *d, const void *const *a,
                     const void *const *b, const void *const *c) {
    uint32_t fa[8][4], fb[8][4], fc[8][8];
    quad_factors(q, a, f->a_col, fa);
    quad_factors(q, b, f->b_row, fb);
    for (unsigned thread = 0; thread < 8; thread++)
        for (unsigned v = 0; v < 8; v++) {
            unsigned row, col, lane = quad_lane(q, thread);
            quad_place(f->c, thread, v, &row, &col);
            if (f->c == TILE_F32)
                memcpy(&fc[row][col], (const char *)c[v] + 4 * lane, 4);
            else
                fc[row][col] = half_at(c, lane, v);
        }
    for (unsigned thread = 0; thread < 8; thread++)
        for (unsigned v = 0; v < 8; v++) {
            unsigned row, col, lane = quad_lane(q, thread);
            quad_place(f->d, thread, v, &row, &col);
            uint32_t u = fc[row][col];
            if (f->d == TILE_F32) {
                float acc = f->c == TILE_F32 ? float_of(u) : half_to_float(u);
                acc = quad_dot_f32(fa[row], fb[col], acc);
                memcpy((char *)d[v] + 4 * lane, &acc, 4);
            } else {
                uint16_t h = (uint16_t)quad_dot_f16(fa[row], fb[col], u);
                memcpy((char *)d[v / 2] + 4 * lane + 2 * (v & 1), &h, 2);
            }
        }
}

/* A's factors, unless they are those of the product before. */
static void unpack_a(const struct tile_engine *e, struct tile_scratch *s, enum tile_type t,
                     unsigned rows, unsigned k) {
    bool fits = rows * TILE_ROW_BYTES <= sizeof s->known_a;
    if (fits && s->known_rows == rows && s->known_k == k && s->known_type == t &&
        memcmp(s->known_a, s->packed_a, (size_t)rows * TILE_ROW_BYTES) == 0)
        return;
    e->unpack_a(s, t, rows, k);
    s->known_rows = fits ? rows : 0;
    s->known_k = k;
    s->known_type = t;
    if (fits)
        memcpy(s->known_a, s->packed_a, (size_t)rows * TILE_ROW_BYTES);
}

static uint16_t half_of_eight(enum tile_type t, uint8_t u) {
    return (uint16_t)(t == TILE_E5M2 ? (uint32_t)u << 8 : float_to_half(float_of_eight(u, 3)));
}
/* Of every four bytes of a packed row the lower two (part 0) or the upper two, as halves. */
static void take_halves(enum tile_type t, uint8_t *row, unsigned k, unsigned part) {
    uint16_t h[TILE_MAX_K / 2] = {0};
    for (unsigned i = 0; i < k / 2; i++)
        h[i] = half_of_eight(t, row[i / 2 * 4 + 2 * part + i % 2]);
    memcpy(row, h, k);
}

/* sm_90 multiplies 8-bit floats by wgmma alone. For mma the compiler writes two products of halves,
 * of the lower and of the upper two of every four factors, the sum beginning with zero, and adds C
 * at the end (read off the code of ptxas 13.0). */
static void run_as_halves(const struct tile_mma *f, struct tile_job *j, const void *const *a,
                          const void *const *b) {
    const struct tile_engine *e = tile_engine_get();
    uint32_t c[TILE_MMA_MAX_REGS][SIM_LANES], t;
    for (unsigned r = 0; r < f->nc; r++) /* D may be C */
        memcpy(c[r], j->c[r], sizeof c[r]);
    j->model = tile_model_of(90, TILE_F16, false);
    j->k = f->k / 2u;
    for (unsigned part = 0; part < 2; part++) {
        pack(f, j->s, a, b);
        for (unsigned row = 0; row < f->m; row++)
            take_halves(f->a, j->s->packed_a + row * TILE_ROW_BYTES, f->k, part);
        for (unsigned col = 0; col < f->n; col++)
            take_halves(f->b, j->s->packed_b + col * TILE_ROW_BYTES, f->k, part);
        unpack_a(e, j->s, TILE_F16, j->rows, j->k);
        e->unpack_b(j->s, TILE_F16, j->strips * 8, j->k);
        j->c = part ? (const void *const *)j->d : NULL;
        e->floats(j);
    }
    for (unsigned r = 0; r < f->nd; r++)
        for (unsigned lane = 0; lane < SIM_LANES; lane++) {
            char *d = (char *)j->d[r] + 4 * lane;
            memcpy(&t, d, 4);
            uint32_t u = c[r][lane];
            if (f->d == TILE_F16)
                t = h_add(t & 0xffff, u & 0xffff) | h_add(t >> 16, u >> 16) << 16;
            else
                t = bits_of(f_add(float_of(t), float_of(u)));
            memcpy(d, &t, 4);
        }
}

void tile_mma_run(const struct tile_mma *f, struct tile_scratch *s, void *const *d,
                  const void *const *a, const void *const *b, const void *const *c) {
    const struct tile_engine *e = tile_engine_get();
    struct tile_job j = {.s = s,
                         .model = f->model,
                         .k = f->a == TILE_B1 ? f->k / 32u : f->k,
                         .rows = f->m,
                         .strips = f->n / 8u,
                         .halves = f->m / 8u,
                         .d = d,
                         .c = c,
                         .half = f->d == TILE_F16,
                         .half_c = f->c == TILE_F16,
                         .saturate = f->saturate,
                         .bits = f->a == TILE_B1,
                         .bits_and = f->popc_and};
    if (f->quads) {
        for (unsigned q = 0; q < 4; q++)
            run_quad(f, q, d, a, b, c);
        return;
    }
    if (f->a == TILE_F64) {
        run_doubles(f, &j, a, b);
        return;
    }
    if (f->as_halves) {
        run_as_halves(f, &j, a, b);
        return;
    }
    pack(f, s, a, b);
    unpack_a(e, s, f->a, j.rows, j.k);
    e->unpack_b(s, f->b, j.strips * 8, j.k);
    if (is_int(f->a))
        e->ints(&j);
    else
        e->floats(&j);
}

/* ---- wmma.load and wmma.store: which elements of a matrix a lane's registers hold ---- */

struct fragment_words {
    bool have_type, have_shape, have_major;
};

static bool fragment_shape(str s, struct tile_fragment *f) {
    static const struct {
        const char *name;
        uint8_t m, n;
        uint16_t k;
    } shapes[] = {{"m16n16k16", 16, 16, 16}, {"m8n32k16", 8, 32, 16}, {"m32n8k16", 32, 8, 16},
                  {"m16n16k8", 16, 16, 8},   {"m8n8k4", 8, 8, 4},     {"m8n8k32", 8, 8, 32},
                  {"m8n8k128", 8, 8, 128}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (str_is(s, shapes[i].name)) {
            f->m = shapes[i].m;
            f->n = shapes[i].n;
            f->k = shapes[i].k;
            return true;
        }
    return false;
}

static bool fragment_word(str s, struct tile_fragment *f, struct fragment_words *w) {
    enum tile_type t = tile_type_find(s);
    if (t != TILE_NO_TYPE) {
        f->type = t;
        w->have_type = true;
    } else if (s.n == 1 && s.p[0] >= 'a' && s.p[0] <= 'd') {
        f->which = s.p[0];
    } else if (str_is(s, "row") || str_is(s, "col")) {
        f->col = str_is(s, "col");
        w->have_major = true;
    } else if (fragment_shape(s, f)) {
        w->have_shape = true;
    } else { /* spaces are the caller's */
        return str_is(s, "load") || str_is(s, "store") || str_is(s, "sync") ||
               str_is(s, "aligned") || str_is(s, "global") || str_is(s, "shared") ||
               str_is(s, "shared::cta");
    }
    return true;
}

/* Rows and columns of the fragment's matrix; A's and B's lines run along k in a register. */
static unsigned rows_of(const struct tile_fragment *f) {
    return f->which == 'b' ? f->k : f->m;
}
static unsigned cols_of(const struct tile_fragment *f) {
    return f->which == 'a' ? f->k : f->n;
}

static bool shape_fits(const struct tile_fragment *f) {
    bool factor = f->which == 'a' || f->which == 'b';
    switch (f->type) {
    case TILE_F16:
        return f->k == 16;
    case TILE_BF16:
    case TILE_S8:
    case TILE_U8:
        return factor && f->k == 16;
    case TILE_TF32:
        return factor && f->k == 8;
    case TILE_S4:
    case TILE_U4:
        return factor && f->k == 32 && f->col == (f->which == 'b');
    case TILE_B1:
        return factor && f->k == 128 && f->col == (f->which == 'b');
    case TILE_F32:
        return !factor && (f->k == 16 || f->k == 8);
    case TILE_S32:
        return !factor && (f->k == 16 || f->k == 32 || f->k == 128);
    case TILE_F64:
        return f->k == 4;
    default:
        return false;
    }
}

bool tile_fragment_parse(const str *mods, size_t n, struct tile_fragment *out, const char **why) {
    struct fragment_words w = {0};
    *out = (struct tile_fragment){.type = TILE_NO_TYPE};
    *why = "a suffix that no wmma.load or wmma.store has";
    for (size_t i = 0; i < n; i++)
        if (!fragment_word(mods[i], out, &w))
            return false;
    *why = "no such fragment: shape, type and order do not go together";
    if (!w.have_type || !w.have_shape || !w.have_major || !out->which || !shape_fits(out))
        return false;
    unsigned bits = tile_type_bits(out->type), reg = out->type == TILE_F64 ? 64 : 32;
    out->reg_bytes = (uint8_t)(reg / 8);
    out->distinct = (uint8_t)(rows_of(out) * cols_of(out) * bits / SIM_LANES / reg);
    bool factor = out->which == 'a' || out->which == 'b';
    out->nregs = factor && out->type == TILE_F16 ? 8 : out->distinct;
    /* A register's elements are neighbours in memory if memory runs the same way. */
    bool along = out->col == (out->which == 'b');
    out->pieces = (uint8_t)(along ? 1 : reg / bits);
    out->piece_bytes = (uint8_t)(reg / 8 / out->pieces);
    return true;
}

/* Row and column of the first element of a piece. */
static void place(const struct tile_fragment *f, unsigned lane, unsigned reg, unsigned piece,
                  unsigned *row, unsigned *col) {
    unsigned g = lane / 4, t = lane % 4, bits = tile_type_bits(f->type);
    unsigned each = f->reg_bytes * 8u / bits; /* elements of a register */
    unsigned in_block = f->m == 8 ? 1 : 2, halves = f->m / 8u;
    if (f->which == 'a') {
        unsigned groups = f->k / (4 * each), block = reg / (in_block * groups);
        unsigned in = reg % (in_block * groups);
        *row = (block * in_block + in % in_block) * 8 + g;
        *col = in / in_block * 4 * each + t * each + piece;
    } else if (f->which == 'b') {
        unsigned groups = f->k / (4 * each);
        *row = reg % groups * 4 * each + t * each + piece;
        *col = reg / groups * 8 + g;
    } else {
        unsigned pair = reg * each / 2, in = reg * each % 2 + piece;
        *row = pair % halves * 8 + g;
        *col = pair / halves * 8 + 2 * t + in;
    }
}

void tile_fragment_offsets(const struct tile_fragment *f, unsigned reg, unsigned piece,
                           uint32_t stride, int64_t *offset) {
    unsigned bits = tile_type_bits(f->type);
    int64_t lead = stride ? (int64_t)stride : f->col ? (int64_t)rows_of(f) : (int64_t)cols_of(f);
    for (unsigned lane = 0; lane < SIM_LANES; lane++) {
        unsigned row, col;
        place(f, lane, reg % f->distinct, piece, &row, &col);
        int64_t at = f->col ? col * lead + row : row * lead + col;
        offset[lane] = at * bits / 8;
    }
}

/* ---- wgmma: suffixes, descriptors, and the way from shared memory to packed rows ----
 *
 * Shared memory holds an operand as core matrices of 8 lines of 16 bytes. K-major, a line is 16
 * bytes of k of one row; M- or N-major, it is 8 rows (of 2 bytes) at one k. How the matrices
 * follow each other is what a descriptor says; CUTLASS's mma_traits_sm90_gmma.hpp has it as
 * layouts:
 *
 *     K-major    no swizzle  ((8,m),2):((1,SBO),LBO)        in units of 16 bytes
 *                swizzled    ((8,m),2):((W,SBO),1)          W = 2, 4, 8
 *     MN-major   no swizzle  ((1,m),(8,k)):((X,SBO),(1,LBO))
 *                swizzled    ((W,m),(8,k)):((1,LBO),(W,SBO))
 *
 * and the swizzle exchanges pieces by bits 7 and up of the address. */

static bool wgmma_shape(str s, struct tile_wgmma *f) {
    unsigned n = 0, k = 0;
    size_t i = 4;
    if (!str_starts(s, S("m64n")))
        return false;
    while (i < s.n && i < 8 && s.p[i] >= '0' && s.p[i] <= '9')
        n = n * 10 + (unsigned)(s.p[i++] - '0');
    if (i >= s.n || s.p[i++] != 'k')
        return false;
    for (size_t end = i + 3; i < s.n && i < end && s.p[i] >= '0' && s.p[i] <= '9'; i++)
        k = k * 10 + (unsigned)(s.p[i] - '0');
    f->n = (uint16_t)n;
    f->k = (uint16_t)k;
    return i == s.n;
}

static bool is_fp8(enum tile_type t) {
    return t == TILE_E4M3 || t == TILE_E5M2;
}
static bool is_int8(enum tile_type t) {
    return t == TILE_S8 || t == TILE_U8;
}
static bool types_exist(const struct tile_wgmma *f) {
    bool pair = f->a == f->b || (is_fp8(f->a) && is_fp8(f->b)) || (is_int8(f->a) && is_int8(f->b));
    if (is_int8(f->a) || f->a == TILE_B1)
        return pair && f->d == TILE_S32;
    if (f->a == TILE_F16 || is_fp8(f->a))
        return pair && (f->d == TILE_F16 || f->d == TILE_F32);
    return pair && (f->a == TILE_BF16 || f->a == TILE_TF32) && f->d == TILE_F32;
}
static bool wgmma_shape_exists(const struct tile_wgmma *f) {
    bool ints = f->d == TILE_S32;
    bool n_ok = f->n >= 8 && f->n <= 256 && (ints && f->n > 32 ? f->n % 16 == 0 : f->n % 8 == 0);
    return n_ok && f->k * tile_type_bits(f->a) == 256;
}

bool tile_wgmma_parse(const str *mods, size_t n, struct tile_wgmma *out, const char **why) {
    enum tile_type type[3] = {TILE_NO_TYPE, TILE_NO_TYPE, TILE_NO_TYPE};
    unsigned ntypes = 0;
    *out = (struct tile_wgmma){0};
    for (size_t i = 0; i < n; i++) {
        enum tile_type t = tile_type_find(mods[i]);
        if (t != TILE_NO_TYPE && ntypes < 3) {
            type[ntypes++] = t;
        } else if (str_is(mods[i], "sp")) {
            *why = "sparse matrix products are not supported; use the dense form";
            return false;
        } else if (str_is(mods[i], "satfinite")) {
            out->saturate = true;
        } else if (!str_is(mods[i], "mma_async") && !str_is(mods[i], "sync") &&
                   !str_is(mods[i], "aligned") && !str_is(mods[i], "and") &&
                   !str_is(mods[i], "popc") && !wgmma_shape(mods[i], out)) {
            *why = "a suffix that wgmma.mma_async does not have";
            return false;
        }
    }
    out->d = type[0];
    out->a = type[1];
    out->b = type[2];
    *why = "no wgmma has this shape with these types";
    if (!types_exist(out) || !wgmma_shape_exists(out) || (out->saturate && !is_int8(out->a)))
        return false;
    out->nd = (uint8_t)(out->n / (out->d == TILE_F16 ? 4 : 2));
    out->model = tile_model_of(90, out->a, true);
    return true;
}

const char *tile_wgmma_check(const struct tile_wgmma *f) {
    if ((f->trans_a || f->trans_b) && tile_type_bits(f->a) != 16)
        return "only 16-bit types can be M- or N-major";
    if (f->trans_a && f->a_in_registers)
        return "A in registers has no major order";
    if ((f->negate_a || f->negate_b) && f->d == TILE_S32)
        return "integers cannot be negated";
    return NULL;
}

struct tile_desc tile_desc_decode(uint64_t bits) {
    static const uint8_t swizzles[] = {0, 128, 64, 32};
    return (struct tile_desc){.start = (uint32_t)(bits & 0x3fff) << 4,
                              .leading = (uint32_t)(bits >> 16 & 0x3fff) << 4,
                              .stride = (uint32_t)(bits >> 32 & 0x3fff) << 4,
                              .base_offset = (uint8_t)(bits >> 49 & 7),
                              .swizzle = swizzles[bits >> 62]};
}

/* The swizzle's pattern begins base_offset lines of 128 bytes after a multiple of 1024. */
static uint32_t piece_place(const struct tile_desc *d, uint32_t offset) {
    uint32_t at = d->start + offset, phase = (uint32_t)d->base_offset << 7;
    return (tile_swizzle(at - phase, d->swizzle) + phase) & 0x3ffff;
}

size_t tile_wgmma_pieces(const struct tile_wgmma *f, bool b, uint64_t desc, uint32_t *address) {
    struct tile_desc d = tile_desc_decode(desc);
    unsigned lines = b ? f->n : TILE_MAX_ROWS, width = d.swizzle / PIECE; /* 0: no swizzle */
    size_t n = 0;
    if (!(b ? f->trans_b : f->trans_a)) {
        for (unsigned r = 0; r < lines; r++)
            for (unsigned half = 0; half < 2; half++) {
                uint32_t along = half ? (width ? PIECE : d.leading) : 0;
                uint32_t pitch = width ? d.swizzle : PIECE;
                address[n++] = piece_place(&d, r % 8 * pitch + r / 8 * d.stride + along);
            }
        return n;
    }
    for (unsigned k = 0; k < f->k; k++)
        for (unsigned i = 0; i < lines / 8; i++) {
            uint32_t line = width ? i % width * PIECE + i / width * d.leading : i * d.stride;
            uint32_t deep = k % 8 * (width ? d.swizzle : PIECE);
            address[n++] = piece_place(&d, line + deep + k / 8 * (width ? d.stride : d.leading));
        }
    return n;
}

/* Packed rows from pieces; what lies outside of shared memory is zero. */
static void gather(const struct tile_wgmma *f, bool b, uint64_t desc, const uint8_t *shared,
                   size_t bytes, uint8_t *packed) {
    uint32_t address[TILE_WGMMA_MAX_PIECES];
    size_t n = tile_wgmma_pieces(f, b, desc, address);
    bool trans = b ? f->trans_b : f->trans_a;
    unsigned across = (b ? f->n : TILE_MAX_ROWS) / 8;
    for (size_t i = 0; i < n; i++) {
        uint8_t piece[PIECE] = {0};
        if (address[i] < bytes && bytes - address[i] >= PIECE)
            memcpy(piece, shared + address[i], PIECE);
        if (!trans) {
            memcpy(packed + i * PIECE, piece, PIECE);
            continue;
        }
        uint8_t *to = packed + i % across * 8 * TILE_ROW_BYTES + i / across * 2;
        for (unsigned r = 0; r < 8; r++)
            memcpy(to + r * TILE_ROW_BYTES, piece + 2 * r, 2);
    }
}

static void gather_registers(const void *const *a, uint8_t *packed) {
    for (unsigned i = 0; i < TILE_WGMMA_WARPS * TILE_WGMMA_A_REGS; i++)
        for (unsigned g = 0; g < 8; g++) {
            unsigned row = i / 4 * 16 + i % 2 * 8 + g;
            memcpy(packed + row * TILE_ROW_BYTES + i % 4 / 2 * PIECE,
                   (const char *)a[i] + g * PIECE, PIECE);
        }
}

static void negate(int32_t *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        v[i] = (int32_t)((uint32_t)v[i] ^ 0x80000000u);
}

void tile_wgmma_run(const struct tile_wgmma *f, struct tile_scratch *s, const uint8_t *shared,
                    size_t bytes, uint64_t desc_a, uint64_t desc_b, const void *const *a,
                    void *const *d, bool scale_d) {
    const struct tile_engine *e = tile_engine_get();
    struct tile_job j = {.s = s,
                         .model = f->model,
                         .k = f->a == TILE_B1 ? f->k / 32u : f->k,
                         .rows = TILE_MAX_ROWS,
                         .strips = f->n / 8u,
                         .halves = 2,
                         .count = f->nd,
                         .d = d,
                         .c = scale_d ? (const void *const *)d : NULL,
                         .half = f->d == TILE_F16,
                         .half_c = f->d == TILE_F16,
                         .saturate = f->saturate,
                         .bits = f->a == TILE_B1,
                         .bits_and = true};
    if (f->a_in_registers)
        gather_registers(a, s->packed_a);
    else
        gather(f, false, desc_a, shared, bytes, s->packed_a);
    gather(f, true, desc_b, shared, bytes, s->packed_b);
    s->known_rows = 0; /* mma's: `a` is written over */
    e->unpack_a(s, f->a, j.rows, j.k);
    e->unpack_b(s, f->b, f->n, j.k);
    if (f->negate_a != f->negate_b)
        negate(s->a, (size_t)j.rows * j.k);
    if (f->d == TILE_S32)
        e->ints(&j);
    else
        e->floats(&j);
}
