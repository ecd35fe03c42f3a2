/* The tile modules against an H200, by the answers that hardware/record.cu wrote down: equal bits.
 * Without that file there is nothing to compare and the cases are skipped. */
#include "hardware/forms.h"
#include "tap.h"

#include "sim/tile_matrix.h"
#include "sim/tile_mbarrier.h"
#include "sim/tile_mma.h"
#include "sim/tile_tma.h"
#include "sim/tile_wgmma.h"

#include <stdlib.h>

#define MAX_BYTES (1u << 20)
#define NAME      48u
static struct tile_scratch scratch;
static char answers[MAX_BYTES];
static size_t answers_bytes;

static bool load_answers(void) {
    char path[512];
    const char *root = getenv("SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/tests/sim/hardware/h200.bin", root ? root : ".");
    FILE *f = answers_bytes ? NULL : fopen(path, "rb");
    if (f) {
        answers_bytes = fread(answers, 1, sizeof answers, f);
        fclose(f);
    }
    return answers_bytes > 0;
}
#define NEED_ANSWERS                                                                               \
    if (!load_answers())                                                                           \
    SKIP("no tests/sim/hardware/h200.bin")

static const void *answer(const char *group, const char *name, uint32_t *bytes) {
    char full[NAME] = {0};
    snprintf(full, sizeof full, "%s/%s", group, name);
    for (size_t at = 0; at + NAME + 4 <= answers_bytes;) {
        memcpy(bytes, answers + at + NAME, 4);
        if (*bytes > answers_bytes - at - NAME - 4)
            break;
        if (memcmp(answers + at, full, NAME) == 0)
            return answers + at + NAME + 4;
        at += NAME + 4 + *bytes;
    }
    CHECKF(false, "%s is missing", full);
    return NULL;
}

static size_t split(const char *text, str *mods) {
    str rest = str_view(text), word;
    size_t n = 0;
    while (n < 16 && str_word(&rest, '.', &word))
        mods[n++] = word;
    return n;
}

/* One line for each distribution: how many differ, and the first of them. */
static void compare(const char *name, int dist, const uint32_t *got, const uint32_t *gpu,
                    unsigned words) {
    unsigned differ = 0, first = 0;
    for (unsigned i = words; i-- > 0;)
        if (got[i] != gpu[i]) {
            differ++;
            first = i;
        }
    CHECKF(differ == 0, "%s distribution %d: %u of %u differ, first %u: %08x, the GPU gave %08x",
           name, dist, differ, words, first, got[first], gpu[first]);
}

static uint32_t regs[4][128][32];

struct mma_row {
    const char *name, *text;
    unsigned na, nb, nc;
    enum hw_type a, b, c;
};
#define X(id, na, nb, nc, ta, tb, tc, text) {#id, text, na, nb, nc, ta, tb, tc},
static const struct mma_row mma_rows[] = {HW_MMA_FORMS(X)};
#undef X

static void fill(uint32_t (*r)[32], unsigned n, uint64_t seed, enum hw_type t, int dist) {
    for (unsigned i = 0; i < n; i++)
        for (unsigned lane = 0; lane < 32; lane++)
            r[i][lane] = hw_word(seed, t, (enum hw_dist)dist, i * 32 + lane);
}
static void test_mma(void) {
    NEED_ANSWERS;
    for (int form = 0; form < (int)(sizeof mma_rows / sizeof *mma_rows); form++) {
        const struct mma_row *row = &mma_rows[form];
        struct tile_mma f;
        const char *why = "";
        str mods[16];
        uint32_t bytes;
        bool ok = tile_mma_parse(mods, split(row->text, mods), 90, &f, &why);
        CHECKF(ok && f.na == row->na && f.nb == row->nb && f.nd == row->nc, "%s: %s", row->text,
               why);
        const char *gpu = answer("mma", row->name, &bytes);
        if (!ok || !gpu)
            continue;
        CHECK(bytes == HW_DISTS * row->nc * 128);
        const void *a[8], *b[8], *c[8];
        void *d[8];
        for (int i = 0; i < 8; i++)
            a[i] = regs[0][i], b[i] = regs[1][i], c[i] = regs[2][i], d[i] = regs[3][i];
        for (int dist = 0; dist < HW_DISTS; dist++) {
            fill(regs[0], row->na, hw_seed(0, form, dist, 0), row->a, dist);
            fill(regs[1], row->nb, hw_seed(0, form, dist, 1), row->b, dist);
            fill(regs[2], row->nc, hw_seed(0, form, dist, 2), hw_acc(row->c, dist), dist);
            tile_mma_run(&f, &scratch, d, a, b, c);
            uint32_t want[8 * 32];
            memcpy(want, gpu + (size_t)dist * row->nc * 128, row->nc * 128);
            compare(row->name, dist, regs[3][0], want, row->nc * 32);
        }
    }
}

static const struct mma_row f64_rows[] = {
#define X(id, na, nb, nc, text) {#id, text, na, nb, nc, HW_F64, HW_F64, HW_F64},
    HW_F64_FORMS(X)
#undef X
};
static void fill_doubles(uint64_t (*r)[32], unsigned n, uint64_t seed, int dist) {
    for (unsigned i = 0; i < n; i++)
        for (unsigned lane = 0; lane < 32; lane++)
            r[i][lane] = hw_double(seed, (enum hw_dist)dist, i * 32 + lane);
}
static bool nan_double(uint64_t u) {
    return (u & ~(UINT64_C(1) << 63)) > UINT64_C(0x7ff0000000000000);
}
static void test_doubles(void) {
    static uint64_t r[4][8][32];
    NEED_ANSWERS;
    for (int form = 0; form < (int)(sizeof f64_rows / sizeof *f64_rows); form++) {
        const struct mma_row *row = &f64_rows[form];
        struct tile_mma f;
        const char *why = "";
        str mods[16];
        uint32_t bytes;
        bool ok = tile_mma_parse(mods, split(row->text, mods), 90, &f, &why);
        CHECKF(ok, "%s: %s", row->text, why);
        const char *gpu = answer("f64", row->name, &bytes);
        const void *a[8], *b[8], *c[8];
        void *d[8];
        for (int i = 0; i < 8; i++)
            a[i] = r[0][i], b[i] = r[1][i], c[i] = r[2][i], d[i] = r[3][i];
        for (int dist = 0; ok && gpu && dist < HW_DISTS; dist++) {
            fill_doubles(r[0], row->na, hw_seed(1, form, dist, 0), dist);
            fill_doubles(r[1], row->nb, hw_seed(1, form, dist, 1), dist);
            fill_doubles(r[2], row->nc, hw_seed(1, form, dist, 2), dist);
            tile_mma_run(&f, &scratch, d, a, b, c);
            for (unsigned i = 0; i < row->nc * 32; i++) {
                uint64_t want, got = r[3][i / 32][i % 32];
                memcpy(&want, gpu + ((size_t)dist * row->nc * 32 + i) * 8, 8);
                CHECKF(got == want || (nan_double(got) && nan_double(want)),
                       "%s distribution %d place %u: %016llx, the GPU gave %016llx", row->name,
                       dist, i, (unsigned long long)got, (unsigned long long)want);
            }
        }
    }
}

static uint8_t shared[HW_SHARED_WORDS * 4];
static void fill_shared(unsigned at, unsigned words, uint64_t seed, enum hw_type t, int dist) {
    for (unsigned i = 0; i < words; i++) {
        uint32_t w = hw_word(seed, t, (enum hw_dist)dist, i);
        memcpy(shared + at + 4 * i, &w, 4);
    }
}
static const struct {
    const char *name, *text, *immediates;
    unsigned nd;
    enum hw_type a, b, c;
} wgmma_rows[] = {
#define X(id, nd, ta, tb, tc, text, immediates)                                                    \
    {#id, "mma_async.sync.aligned.m64n8" text, immediates, nd, ta, tb, tc},
    HW_WGMMA_FORMS(X)
#undef X
};
static void test_wgmma(void) {
    NEED_ANSWERS;
    for (int form = 0; form < (int)(sizeof wgmma_rows / sizeof *wgmma_rows); form++) {
        struct tile_wgmma f;
        const char *why = "", *name = wgmma_rows[form].name;
        str mods[16];
        uint32_t bytes;
        unsigned nd = wgmma_rows[form].nd;
        bool ok = tile_wgmma_parse(mods, split(wgmma_rows[form].text, mods), &f, &why);
        CHECKF(ok && f.nd == nd, "%s: %s", wgmma_rows[form].text, why);
        const char *gpu = answer("wgmma", name, &bytes);
        f.negate_a = strstr(wgmma_rows[form].immediates, ", -1, ") != NULL;
        f.negate_b = strstr(wgmma_rows[form].immediates, "-1, -1") != NULL;
        void *d[16];
        for (unsigned i = 0; i < 4 * nd; i++)
            d[i] = regs[0][i];
        for (int dist = 0; ok && gpu && dist < HW_DISTS; dist++) {
            fill_shared(0, 1024, hw_seed(2, form, dist, 0), wgmma_rows[form].a, dist);
            fill_shared(4096, 1024, hw_seed(2, form, dist, 1), wgmma_rows[form].b, dist);
            for (unsigned i = 0; i < nd; i++)
                for (unsigned t = 0; t < 128; t++)
                    regs[0][t / 32 * nd + i][t % 32] =
                        hw_word(hw_seed(2, form, dist, 2), hw_acc(wgmma_rows[form].c, dist),
                                (enum hw_dist)dist, i * 128 + t);
            tile_wgmma_run(&f, &scratch, shared, sizeof shared, hw_descriptor(0, 128, 256, 0, 0),
                           hw_descriptor(4096, 128, 256, 0, 0), NULL, d, true);
            uint32_t want[4 * 32];
            memcpy(want, gpu + (size_t)dist * nd * 128, nd * 128);
            compare(name, dist, regs[0][0], want, nd * 32);
        }
    }
}

static void test_layouts(void) {
    NEED_ANSWERS;
    struct tile_wgmma f;
    const char *why = "";
    str mods[16];
    bool ok = tile_wgmma_parse(mods, split("mma_async.sync.aligned.m64n64k16.f32.bf16.bf16", mods),
                               &f, &why);
    CHECKF(ok, "%s", why);
    void *d[128];
    const void *a[16];
    for (unsigned i = 0; i < 128; i++)
        d[i] = regs[0][i];
    for (unsigned i = 0; i < HW_LAYOUTS; i++) {
        const struct hw_layout *l = &hw_layouts[i];
        char name[16];
        uint32_t bytes;
        snprintf(name, sizeof name, "%u", i);
        const char *gpu = answer("layout", name, &bytes);
        fill_shared(0, HW_SHARED_WORDS, hw_seed(3, (int)i, 0, 0), HW_BF16, HW_NORMAL);
        for (unsigned r = 0; r < 16; r++) {
            a[r] = regs[1][r];
            for (unsigned lane = 0; lane < 32; lane++)
                regs[1][r][lane] = hw_word(hw_seed(3, (int)i, 0, 1), HW_BF16, HW_NORMAL,
                                           r % 4 * 128 + r / 4 * 32 + lane);
        }
        f.trans_a = l->trans_a;
        f.trans_b = l->trans_b;
        f.a_in_registers = l->in_registers;
        tile_wgmma_run(&f, &scratch, shared, sizeof shared,
                       hw_descriptor(l->start_a, l->lead_a, l->stride_a, l->base_a, l->mode),
                       hw_descriptor(l->start_b, l->lead_b, l->stride_b, l->base_b, l->mode), a, d,
                       false);
        unsigned differ = 0;
        for (unsigned r = 0; gpu && r < 32; r++) {
            uint64_t want, hash = 0;
            for (unsigned t = 0; t < 128; t++)
                hash = hw_hash(hash, regs[0][t / 32 * 32 + r][t % 32]);
            memcpy(&want, gpu + 8 * r, 8);
            differ += hash != want;
        }
        CHECKF(differ == 0, "layout %u: %u of 32 registers differ from the GPU's", i, differ);
    }
}

static void test_matrices(void) {
    NEED_ANSWERS;
#define X(count, trans, text) {count, trans, #count #trans, text},
    static const struct {
        unsigned count;
        int trans;
        const char *name, *text;
    } rows[] = {HW_MATRIX_FORMS(X)};
#undef X
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct tile_matrix f;
        const char *why = "";
        str mods[16];
        uint32_t bytes, want[256];
        CHECK(tile_matrix_parse(mods, split(rows[k].text, mods), &f, &why));
        const void *gpu = answer("matrix", rows[k].name, &bytes);
        if (!gpu || bytes != (rows[k].count * 32 + 128) * 4)
            continue;
        memcpy(want, gpu, bytes);
        const uint8_t *from[32];
        uint8_t *to[32];
        uint32_t *load[4];
        const uint32_t *store[4];
        fill_shared(0, 128, 5, HW_INT, HW_BITS);
        for (unsigned lane = 0; lane < 32; lane++)
            from[lane] = to[lane] = shared + hw_matrix_row(lane);
        for (unsigned i = 0; i < 4; i++)
            store[i] = load[i] = regs[0][i];
        tile_matrix_load(&f, from, load);
        compare(rows[k].text, 0, regs[0][0], want, rows[k].count * 32);
        fill(regs[0], 4, 6, HW_INT, HW_BITS);
        tile_matrix_store(&f, to, store);
        uint32_t words[128];
        memcpy(words, shared, sizeof words);
        compare(rows[k].text, 1, words, want + rows[k].count * 32, 128);
    }
    uint32_t bytes, want[32];
    const void *gpu = answer("matrix", "move", &bytes);
    if (!gpu)
        return;
    memcpy(want, gpu, sizeof want);
    fill(regs[0], 1, 7, HW_INT, HW_BITS);
    tile_matrix_move(regs[1][0], regs[0][0]);
    compare("movmatrix", 0, regs[1][0], want, 32);
}

static void test_fragments(void) {
    NEED_ANSWERS;
#define X(id, n, text) {#id, text, n},
    static const struct {
        const char *name, *text;
        unsigned n;
    } rows[] = {HW_WMMA_FORMS(X)};
#undef X
    uint32_t numbers[1024];
    for (uint32_t i = 0; i < 1024; i++)
        numbers[i] = (2 * i + 1) << 16 | 2 * i;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct tile_fragment f;
        const char *why = "";
        str mods[16];
        uint32_t bytes, want[256];
        bool ok = tile_fragment_parse(mods, split(rows[k].text, mods), &f, &why);
        CHECKF(ok && f.nregs == rows[k].n, "%s: %s", rows[k].text, why);
        const void *gpu = answer("wmma", rows[k].name, &bytes);
        if (!ok || !gpu)
            continue;
        memcpy(want, gpu, rows[k].n * 128);
        for (unsigned r = 0; r < f.nregs; r++)
            for (unsigned p = 0; p < f.pieces; p++) {
                int64_t at[32];
                tile_fragment_offsets(&f, r, p, 0, at);
                for (unsigned lane = 0; lane < 32; lane++)
                    memcpy((char *)&regs[0][r][lane] + p * f.piece_bytes,
                           (const char *)numbers + at[lane], f.piece_bytes);
            }
        compare(rows[k].text, 0, regs[0][0], want, rows[k].n * 32);
    }
}

/* The copy as the recorder's kernel does it; `result` is shared memory or global memory. */
static void simulate_copy(unsigned which, const struct tile_map *m, uint8_t *global, uint8_t *box) {
    const struct hw_copy *c = &hw_copies[which];
    struct tile_walk w;
    struct tile_piece p;
    int32_t at[5];
    for (int i = 0; i < 5; i++)
        at[i] = c->at[i];
    tile_walk_start(&w, m, at, HW_COPY_AT);
    while (tile_walk_next(&w, &p)) {
        uint8_t *g = global + (p.inside ? p.global - m->global : 0), *s = box + p.shared;
        if (c->op < 0 && p.inside)
            tile_map_convert(m, s, g, p.bytes);
        else if (c->op < 0)
            tile_map_fill(m, s, p.bytes);
        else if (p.inside && c->op == 0)
            memcpy(g, s, p.bytes);
        else if (p.inside)
            tile_reduce((enum tile_reduce_op)(c->op - 1), m->type, g, s, p.bytes);
    }
}
static void make_map(const struct hw_copy *c, struct tile_map *m) {
    static const uint32_t swizzles[] = {0, 32, 64, 128};
    *m = (struct tile_map){.global = 4096,
                           .rank = c->rank,
                           .type = (enum tile_map_type)c->type,
                           .swizzle = swizzles[c->swizzle],
                           .fill_nan = c->nan};
    for (unsigned i = 0; i < c->rank; i++) {
        m->extent[i] = c->extent[i];
        m->stride[i] = i ? c->pitch[i] : tile_map_type_bytes(m->type);
        m->box[i] = c->box[i];
        m->step[i] = i ? c->step[i] : 1;
    }
}
static void test_copies(void) {
    static uint32_t global[HW_GLOBAL_WORDS], box[HW_COPY_AT / 4 + HW_BOX_WORDS], want[4096];
    NEED_ANSWERS;
    for (unsigned i = 0; i < HW_COPIES; i++) {
        const struct hw_copy *c = &hw_copies[i];
        struct tile_map m;
        struct err err = {0};
        uint8_t encoded[TILE_MAP_BYTES];
        uint32_t bytes;
        make_map(c, &m);
        bool ok = tile_map_encode(&m, encoded, &err);
        CHECKF(ok, "%s: %s", c->name, err.text);
        const void *gpu = answer("copy", c->name, &bytes);
        if (!ok || !gpu || bytes > sizeof want)
            continue;
        CHECKF(bytes > 4, "%s: the driver refused this map", c->name);
        memcpy(want, gpu, bytes);
        for (unsigned k = 0; k < HW_GLOBAL_WORDS; k++)
            global[k] = hw_memory(c->type, 80 + i, k);
        for (unsigned k = 0; k < HW_COPY_AT / 4 + HW_BOX_WORDS; k++)
            box[k] = c->op < 0 ? 0xeeeeeeeeu : hw_memory(c->type, 40 + i, k);
        simulate_copy(i, &m, (uint8_t *)global, (uint8_t *)box);
        uint32_t *result = c->op < 0 ? box + HW_COPY_AT / 4 : global;
        unsigned words = c->op < 0 ? HW_BOX_WORDS : HW_GLOBAL_WORDS;
        if (tile_map_box_bytes(&m) <= 1024) {
            compare(c->name, 0, result, want, 256);
            continue;
        }
        for (unsigned k = 0; k < words / HW_HASH_WORDS; k++) {
            uint64_t h = 0;
            for (unsigned x = 0; x < HW_HASH_WORDS; x++)
                h = hw_hash(h, result[k * HW_HASH_WORDS + x]);
            result[k] = (uint32_t)h;
        }
        compare(c->name, 0, result, want, words / HW_HASH_WORDS);
    }
}

static void test_barrier(void) {
    NEED_ANSWERS;
    uint32_t bytes, want[HW_BARRIER_STEPS][4];
    const void *gpu = answer("mbarrier", "steps", &bytes);
    CHECK(gpu && bytes == sizeof want);
    if (!gpu || bytes != sizeof want)
        return;
    memcpy(want, gpu, sizeof want);
    uint64_t word = 0;
    for (unsigned i = 0; i < HW_BARRIER_STEPS; i++) {
        uint64_t token = 0;
        uint32_t v = hw_steps[i].value;
        enum tile_mbarrier_status s =
            hw_steps[i].step == HW_INIT       ? tile_mbarrier_init(&word, v)
            : hw_steps[i].step == HW_ARRIVE   ? tile_mbarrier_arrive(&word, v, &token)
            : hw_steps[i].step == HW_EXPECT   ? tile_mbarrier_expect_tx(&word, v)
            : hw_steps[i].step == HW_COMPLETE ? tile_mbarrier_complete_tx(&word, v)
            : hw_steps[i].step == HW_DROP     ? tile_mbarrier_drop(&word, v, &token)
                                              : tile_mbarrier_arrive_expect_tx(&word, 1, v, &token);
        CHECKF(s <= MBARRIER_COMPLETED, "step %u: %s", i, tile_mbarrier_words(s));
        CHECKF(tile_mbarrier_pending(token) == want[i][0], "step %u: pending %u, not %u", i,
               tile_mbarrier_pending(token), want[i][0]);
        CHECKF(tile_mbarrier_passed_parity(word, 0) == want[i][1] &&
                   tile_mbarrier_passed_parity(word, 1) == want[i][2],
               "step %u: phases", i);
    }
}

static const struct tap_case cases[] = {
    {"mma.sync: bits of an H200", test_mma},
    {"mma.sync of doubles: bits of an H200", test_doubles},
    {"wgmma: bits of an H200", test_wgmma},
    {"wgmma descriptors: what an H200 reads", test_layouts},
    {"ldmatrix, stmatrix, movmatrix: bits of an H200", test_matrices},
    {"wmma fragments: an H200's registers", test_fragments},
    {"tensor copies: an H200's memory", test_copies},
    {"mbarrier: an H200's phases", test_barrier},
};
TAP_CASES(cases)
