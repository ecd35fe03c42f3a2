/* mma.sync and wmma: from suffixes to forms, from registers to packed rows and back.
 *
 * All layouts but one are the same: with g = lane / 4 and t = lane % 4, the 16 bytes that lanes
 * 4g … 4g+3 hold of a register of A are 16 consecutive bytes of row g (plus 8 for the second
 * register of a 16-row block), those of a register of B are of column g, and the accumulators are
 * columns 2t and 2t+1 of row g. The one is mma.m8n8k4 of halves, Volta's, at the end. */
#include "sim/tile_mma.h"

#include "sim/lane_math.h"
#include "sim/tile_engine.h"
#include "target/gpu.h"

#include <fenv.h>

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
