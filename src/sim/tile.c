/* Types of elements, and the sum of a tensor core by its definition. */
#include "sim/tile.h"

#include "sim/lane_math.h"
#include "sim/tile_engine.h"
#include "target/gpu.h"

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
uint32_t tile_round_f16(double sum) {
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
