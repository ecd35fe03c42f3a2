/* The functions of a product that several kernels share, and what a kernel tells them of its tiles.
 */
#include "agent/expert/contraction/contraction.h"
#include "agent/expert/expert.h"

#define SLOTS(array) (array), sizeof(array) / sizeof *(array)

static str number(struct con_writer *w, long long v) {
    return sheet_printf(w->sh, "%lld", v);
}

/* ---- functions that several kernels share ---- */

bool contraction_once(struct con_writer *w, const char *name, const char *mark,
                      const struct slot *slots, size_t n) {
    struct buf *out = &w->sh->functions;
    if (str_find(buf_str(out), str_view(mark)) < out->n)
        return true;
    bool ok = sheet_template(w->sh, name, slots, n, out);
    buf_putc(out, '\n');
    return ok;
}

const char *contraction_product(struct con_writer *w) {
    if (w->g.warpgroup) /* one a width of the instruction */
        return sheet_printf(w->sh, "gemm_warpgroup_%s_%d_%d",
                            w->g.path == CON_TF32     ? "tf32"
                            : w->g.path == CON_F16    ? "f16"
                            : w->g.path == CON_BF16X6 ? "bf16x6"
                                                      : "bf16",
                            w->g.tile_n, w->g.warpgroups)
            .p;
    static const char *const names[] = {
        [CON_SIMT] = "gemm_simt", [CON_TF32] = "gemm_tf32_product", [CON_TF32X3] = "gemm_3xtf32",
        [CON_F16] = "gemm_f16",   [CON_BF16] = "gemm_bf16",
    };
    return names[w->g.path];
}

/* By which its definition is known: the name may stand on a line of its own. */
static str product_mark(struct con_writer *w) {
    return sheet_printf(w->sh, "%s(unsigned char *smem", contraction_product(w));
}

/* What a warp does with the fragments of one step of k. */
static str multiply_text(struct con_writer *w) {
    static const char *const mma[] = {[CON_TF32] = "gemm_mma_tf32",
                                      [CON_TF32X3] = "gemm_mma_tf32",
                                      [CON_F16] = "gemm_mma_f16",
                                      [CON_BF16] = "gemm_mma_bf16"};
    struct slot name[] = {{"mma", str_view(mma[w->g.path])}};
    str once = sheet_render(w->sh, "contraction/once.cu", SLOTS(name));
    struct slot round[] = {{"once", once}};
    switch (w->g.path) {
    case CON_TF32:
        return sheet_render(w->sh, "contraction/round.cu", SLOTS(round));
    case CON_TF32X3:
        return sheet_render(w->sh, "contraction/thrice.cu", NULL, 0);
    default:
        return once;
    }
}

/* "%0, %1, …" and "+f"(d[0]), …": the accumulators of a warpgroup's instruction. */
static void put_registers(struct con_writer *w, int n, str *list, str *outputs) {
    struct buf a, b;
    buf_init(&a, EXPERT_SOURCE_MAX);
    buf_init(&b, EXPERT_SOURCE_MAX);
    for (int i = 0; i < n; i++) {
        bool first = i % 8 == 0, last = i + 1 == n;
        buf_printf(&a, "%s%%%d%s", first ? "\"" : "", i,
                   last         ? "\""
                   : i % 8 == 7 ? ", \"\n"
                                : ", ");
        buf_printf(&b, "\"+f\"(d[%d])%s", i, last ? "" : i % 5 == 4 ? ",\n" : ", ");
    }
    *list = sheet_keep(w->sh, &a);
    *outputs = sheet_keep(w->sh, &b);
    buf_release(&a);
    buf_release(&b);
}

static bool put_warpgroup_functions(struct con_writer *w) {
    static const char *const types[] = {
        [CON_TF32] = "tf32", [CON_F16] = "f16", [CON_BF16] = "bf16", [CON_BF16X6] = "bf16"};
    int n = w->g.tile_n, registers = n / 2;
    bool tf32 = w->g.path == CON_TF32, both = w->g.warpgroups == 2;
    str type = str_view(types[w->g.path]), list, outputs;
    str wgmma = sheet_printf(w->sh, "gemm_wgmma_%.*s_%d", STR_ARG(type), n);
    put_registers(w, registers, &list, &outputs);
    struct slot instruction[] = {
        {"columns", number(w, n)},
        {"name", wgmma},
        {"registers", number(w, registers)},
        {"add", number(w, registers + 2)},
        {"step", tf32 ? S("8") : S("16")},
        {"type", type},
        {"list", list},
        {"a", number(w, registers)},
        {"b", number(w, registers + 1)},
        {"order", tf32 ? S("") : S(", 0, 0")},
        {"outputs", outputs},
    };
    struct slot loop[] = {
        {"name", str_view(contraction_product(w))},
        {"fewer", both ? S("asm volatile(\"setmaxnreg.dec.sync.aligned.u32 40;\");") : S("")},
        {"more", both ? S("asm volatile(\"setmaxnreg.inc.sync.aligned.u32 232;\");") : S("")},
        {"wgmma", wgmma},
    };
    str defines = sheet_printf(w->sh, "void %.*s(", STR_ARG(wgmma));
    str loops = product_mark(w);
    return contraction_once(w, "contraction/tensor.cu", "void gemm_barrier_init(", NULL, 0) &&
           contraction_once(w, "contraction/wgmma.cu", defines.p, SLOTS(instruction)) &&
           contraction_once(w, "contraction/warpgroup.cu", loops.p, SLOTS(loop));
}

/* The copies that the loaders call. */
static bool put_copies(struct con_writer *w) {
    bool rows = false, ones = false, ok = true;
    for (size_t i = 0; i < w->c->noperands; i++) {
        rows |= w->g.tile[i].vector;
        ones |= !w->g.tile[i].vector && w->g.tile[i].async;
    }
    if (rows)
        ok = contraction_once(w, "contraction/copy16.cu", "void gemm_copy16(", NULL, 0);
    return ok &&
           (!ones || contraction_once(w, "contraction/copy4.cu", "void gemm_copy4(", NULL, 0));
}

bool contraction_functions(struct con_writer *w) {
    enum con_path p = w->g.path;
    if (w->g.cute)
        return contraction_cute_functions(w);
    const char *name = contraction_product(w);
    str mark = product_mark(w);
    if (w->g.warpgroup && p == CON_TF32 &&
        !contraction_once(w, "contraction/tf32.cu", "unsigned gemm_tf32(", NULL, 0))
        return false;
    if (w->g.warpgroup)
        return contraction_once(w, "contraction/place.cu", "void gemm_place(", NULL, 0) &&
               put_warpgroup_functions(w);
    if (!contraction_once(w, "contraction/place.cu", "void gemm_place(", NULL, 0) ||
        !put_copies(w) || !contraction_once(w, "contraction/loop.cu", "void gemm_loop(", NULL, 0))
        return false;
    if (p == CON_SIMT)
        return contraction_once(w, "contraction/simt.cu", mark.p, NULL, 0);
    struct slot type[] = {{"type", p == CON_F16 ? S("f16") : S("bf16")}};
    struct slot warp[] = {{"name", str_view(name)}, {"multiply", multiply_text(w)}};
    bool tf32 = p == CON_TF32 || p == CON_TF32X3;
    return contraction_once(w, "contraction/mma.cu", "void gemm_matrix(", NULL, 0) &&
           (tf32
                ? contraction_once(w, "contraction/tf32.cu", "unsigned gemm_tf32(", NULL, 0) &&
                      contraction_once(w, "contraction/mma_tf32.cu", "void gemm_mma_tf32(", NULL, 0)
                : contraction_once(w, "contraction/half.cu",
                                   p == CON_F16 ? "void gemm_mma_f16(" : "void gemm_mma_bf16(",
                                   SLOTS(type))) &&
           contraction_once(w, "contraction/warp.cu", mark.p, SLOTS(warp));
}

/* ---- the configuration ---- */

const struct con_tile *contraction_side_tile(const struct con_writer *w, enum con_axis side) {
    for (size_t i = 0; i < w->c->noperands; i++)
        if (w->c->operands[i].side == side)
            return &w->g.tile[i];
    return NULL;
}

size_t contraction_side_count(const struct con_writer *w, enum con_axis side) {
    size_t n = 0;
    for (size_t i = 0; i < w->c->noperands; i++)
        n += w->c->operands[i].side == side;
    return n;
}

/* Pieces of 16 bytes exchanged within a row so that what is read together lies in all banks: eight
 * rows at one place for ldmatrix, four rows of k at eight places for single loads. */
static str place_text(struct con_writer *w, const struct con_tile *t) {
    int piece = 16 / w->g.element, pieces = t->row / piece;
    if (!w->g.swizzle)
        return sheet_printf(w->sh, "row * %d + col", t->pitch);
    str by;
    if (w->g.element == 4 && !t->k_runs)
        by = S("row % 4 * 2");
    else if (pieces >= 8)
        by = S("row % 8");
    else
        by = sheet_printf(w->sh, "row / %d %% %d", 8 / pieces, pieces);
    return sheet_printf(w->sh, "row * %d + (col / %d ^ %.*s) * %d + col %% %d", t->pitch, piece,
                        STR_ARG(by), piece, piece);
}

void contraction_simt_threads(const struct con_config *g, int *tm, int *tn) {
    int each = g->tile_m * g->tile_n / g->threads;
    *tm = each >= 64 ? 8 : 4;
    *tn = each / *tm;
}

static str thread_text(struct con_writer *w) {
    int tm, tn;
    if (w->g.warpgroup)
        return sheet_printf(w->sh,
                            "static constexpr int WARPGROUPS = %d; // that multiply\n"
                            "static constexpr int PARTS = %d, PRODUCTS = %d; // of an operand; of "
                            "two of them",
                            w->g.warpgroups, w->g.parts, w->g.parts == 1 ? 1 : 6);
    if (w->g.path == CON_SIMT) {
        contraction_simt_threads(&w->g, &tm, &tn);
        return sheet_printf(w->sh, "static constexpr int TM = %d, TN = %d; // of a thread", tm, tn);
    }
    return sheet_printf(w->sh,
                        "static constexpr int WM = %d, WN = %d; // of a warp\n"
                        "static constexpr bool A_ALONG_K = %s, B_ALONG_K = %s; // rows of a tile",
                        w->g.tile_m / w->g.warps_m, w->g.tile_n / w->g.warps_n,
                        contraction_side_tile(w, CON_M)->k_runs ? "true" : "false",
                        contraction_side_tile(w, CON_N)->k_runs ? "true" : "false");
}

static str places_text(struct con_writer *w, const struct con_tile *a, const struct con_tile *b) {
    struct slot slots[] = {
        {"layout", w->g.swizzle ? S("swizzled against bank conflicts")
                                : S("with rows padded against bank conflicts")},
        {"a_at", place_text(w, a)},
        {"b_at", place_text(w, b)},
    };
    return sheet_render(w->sh, "contraction/places.cu", SLOTS(slots));
}

bool contraction_config(struct con_writer *w, str name) {
    const struct con_config *g = &w->g;
    if (g->cute)
        return contraction_cute_config(w, name);
    const struct con_tile *a = contraction_side_tile(w, CON_M),
                          *b = contraction_side_tile(w, CON_N);
    struct slot slots[] = {
        {"about", sheet_printf(w->sh, "Tiles of %.*s: %d x %d results of %d threads, k by %d.",
                               STR_ARG(w->k.name), g->tile_m, g->tile_n, g->threads, g->tile_k)},
        {"name", name},
        {"element", str_view(dtype_info(a->type)->cuda)},
        {"bm", number(w, g->tile_m)},
        {"bn", number(w, g->tile_n)},
        {"bk", number(w, g->tile_k)},
        {"stages", number(w, g->stages)},
        {"folds", number(w, (long long)w->c->nfolds)},
        {"na", number(w, (long long)contraction_side_count(w, CON_M))},
        {"nb", number(w, (long long)contraction_side_count(w, CON_N))},
        {"a_tile", number(w, (long long)a->bytes)},
        {"b_tile", number(w, (long long)b->bytes)},
        {"promote", number(w, g->promote)},
        {"thread", thread_text(w)},
        {"places", w->g.warpgroup ? S("") : places_text(w, a, b)},
    };
    w->sh->half |= a->type == DTYPE_F16;
    w->sh->bfloat |= a->type == DTYPE_BF16;
    return sheet_template(w->sh, "contraction/config.cu", SLOTS(slots), &w->sh->functions);
}
