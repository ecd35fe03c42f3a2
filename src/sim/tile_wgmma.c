/* wgmma: suffixes, descriptors, and the way from shared memory to packed rows.
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
#include "sim/tile_wgmma.h"

#include "sim/tile_engine.h"
#include "sim/tile_tma.h"

#include <string.h>

#define PIECE 16u

static bool read_shape(str s, struct tile_wgmma *f) {
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
static bool shape_exists(const struct tile_wgmma *f) {
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
                   !str_is(mods[i], "popc") && !read_shape(mods[i], out)) {
            *why = "a suffix that wgmma.mma_async does not have";
            return false;
        }
    }
    out->d = type[0];
    out->a = type[1];
    out->b = type[2];
    *why = "no wgmma has this shape with these types";
    if (!types_exist(out) || !shape_exists(out) || (out->saturate && !is_int8(out->a)))
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
static uint32_t place(const struct tile_desc *d, uint32_t offset) {
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
                address[n++] = place(&d, r % 8 * pitch + r / 8 * d.stride + along);
            }
        return n;
    }
    for (unsigned k = 0; k < f->k; k++)
        for (unsigned i = 0; i < lines / 8; i++) {
            uint32_t line = width ? i % width * PIECE + i / width * d.leading : i * d.stride;
            uint32_t deep = k % 8 * (width ? d.swizzle : PIECE);
            address[n++] = place(&d, line + deep + k / 8 * (width ? d.stride : d.leading));
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
