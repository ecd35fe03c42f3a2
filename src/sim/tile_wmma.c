/* wmma.load and wmma.store: which elements of a matrix a lane's registers hold. */
#include "sim/tile_mma.h"

struct fragment_words {
    bool have_type, have_shape, have_major;
};

static bool read_shape(str s, struct tile_fragment *f) {
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

static bool read_word(str s, struct tile_fragment *f, struct fragment_words *w) {
    enum tile_type t = tile_type_find(s);
    if (t != TILE_NO_TYPE) {
        f->type = t;
        w->have_type = true;
    } else if (s.n == 1 && s.p[0] >= 'a' && s.p[0] <= 'd') {
        f->which = s.p[0];
    } else if (str_is(s, "row") || str_is(s, "col")) {
        f->col = str_is(s, "col");
        w->have_major = true;
    } else if (read_shape(s, f)) {
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
        if (!read_word(mods[i], out, &w))
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
