/* Products in CuTe: the struct of tiles as shared layouts, a TiledMMA and copy atoms, the functions
 * that work on it, and the loader of dense operands as a TiledCopy.
 *
 * The kernel around them, the loaders that compute each place, and what is done with the sums are
 * the text of the CUDA dialect: they reach a tile through RowsA and RowsB, which are CuTe layouts
 * here. */
#include "agent/expert/contraction/contraction.h"
#include "agent/expert/expert.h"
#include "agent/expert/sheet/pieces.h"

#define SLOTS(array) (array), sizeof(array) / sizeof *(array)

static str number(struct con_writer *w, long long v) {
    return sheet_printf(w->sh, "%lld", v);
}
static str local(struct con_writer *w, const char *name) {
    return contraction_local(w, name);
}
static int log2_of(int v) {
    int n = 0;
    while (v >> (n + 1))
        n++;
    return n;
}

/* ---- layouts ---- */

/* Pieces of 16 bytes exchanged within a row so that what is read together lies in all banks: eight
 * rows at one place for ldmatrix, four rows of k at eight places for single loads of 4 bytes. */
static str swizzle_text(struct con_writer *w, const struct con_tile *t) {
    int pieces = t->row * w->g.element / 16, row = log2_of(t->row * w->g.element);
    if (!w->g.swizzle)
        return S("cute::Swizzle<0, 4, 3>");
    if (w->g.element == 4 && !t->k_runs)
        return sheet_printf(w->sh, "cute::Swizzle<2, 5, %d>", row - 5);
    return pieces < 8 ? sheet_printf(w->sh, "cute::Swizzle<%d, 4, 3>", log2_of(pieces))
                      : sheet_printf(w->sh, "cute::Swizzle<3, 4, %d>", row - 4);
}

/* As rows, or as (m or n, k). */
static str layout_text(struct con_writer *w, const struct con_tile *t, bool rows) {
    return sheet_printf(w->sh, "%s<%d, %d, %d>", rows || t->k_runs ? "gemm_rows" : "gemm_columns",
                        t->rows, t->row, t->pitch);
}

/* ---- atoms ---- */

static const struct {
    const char *operand, *atom;
    int k; /* of an instruction */
} paths[] = {
    [CON_SIMT] = {"float", "cute::UniversalFMA<float, float, float>", 1},
    [CON_TF32] = {"cute::tfloat32_t", "cute::SM80_16x8x8_F32TF32TF32F32_TN", 8},
    [CON_TF32X3] = {"cute::tfloat32_t", "cute::SM80_16x8x8_F32TF32TF32F32_TN", 8},
    [CON_F16] = {"cute::half_t", "cute::SM80_16x8x16_F32F16F16F32_TN", 16},
    [CON_BF16] = {"cute::bfloat16_t", "cute::SM80_16x8x16_F32BF16BF16F32_TN", 16},
    [CON_BF16X6] = {"cute::bfloat16_t", "", 16}, /* by warpgroups alone */
};

/* Rows along k are what ldmatrix expects; others it transposes, elements of 4 bytes excepted. */
static str fetch_text(const struct con_writer *w, const struct con_tile *t) {
    return w->g.path == CON_SIMT ? S("void")
           : t->k_runs           ? S("cute::SM75_U32x4_LDSM_N")
           : w->g.element == 2   ? S("cute::SM75_U16x8_LDSM_T")
                                 : S("void");
}

struct mma_text {
    str threads, atoms, permutation;
};

/* Threads side by side, each with pieces of four results along either side. */
static struct mma_text simt_text(struct con_writer *w) {
    int tm, tn;
    contraction_simt_threads(&w->g, &tm, &tn);
    int down = w->g.tile_m / tm, across = w->g.tile_n / tn;
    return (struct mma_text){
        sheet_printf(w->sh,
                     "%d x %d threads, each with %d x %d results, four neighbours at a time.", down,
                     across, tm, tn),
        sheet_printf(w->sh,
                     "cute::Layout<cute::Shape<cute::Int<%d>, cute::Int<%d>, cute::_1>, "
                     "cute::Stride<cute::Int<%d>, cute::_1, cute::_0>>",
                     down, across, across),
        sheet_printf(w->sh,
                     "cute::Tile<cute::Layout<cute::Shape<cute::Int<%d>, cute::_4>, "
                     "cute::Stride<cute::_4, cute::_1>>, "
                     "cute::Layout<cute::Shape<cute::Int<%d>, cute::_4>, "
                     "cute::Stride<cute::_4, cute::_1>>, cute::_1>",
                     down, across)};
}

/* Warps side by side; two instructions along n share one ldmatrix. */
static struct mma_text warps_text(struct con_writer *w) {
    return (struct mma_text){
        sheet_printf(w->sh, "%d x %d warps, 16 x 16 results each at a time.", w->g.warps_m,
                     w->g.warps_n),
        sheet_printf(w->sh, "cute::Layout<cute::Shape<cute::Int<%d>, cute::Int<%d>, cute::_1>>",
                     w->g.warps_m, w->g.warps_n),
        sheet_printf(w->sh, "cute::Tile<cute::Int<%d>, cute::Int<%d>, cute::Int<%d>>",
                     16 * w->g.warps_m, 16 * w->g.warps_n, paths[w->g.path].k)};
}

/* wgmma of 64 rows of A and all columns of the tile. */
static str warpgroup_atom(struct con_writer *w) {
    int n = w->g.tile_n;
    if (w->g.path == CON_TF32)
        return sheet_printf(w->sh, "cute::SM90_64x%dx8_F32TF32TF32_SS_TN<>", n);
    const char *type = w->g.path == CON_F16 ? "F16F16" : "BF16BF16";
    return sheet_printf(
        w->sh, "cute::SM90_64x%dx16_F32%s_SS<cute::GMMA::Major::K, cute::GMMA::Major::K>", n, type);
}

/* ---- the struct of tiles ---- */

/* What both kinds of it say. */
static void put_common(struct con_writer *w, str name, struct slots *to) {
    const struct con_config *g = &w->g;
    const struct con_tile *a = contraction_side_tile(w, CON_M),
                          *b = contraction_side_tile(w, CON_N);
    slots_put(to, "about",
              sheet_printf(w->sh, "Tiles of %.*s: %d x %d results of %d threads, k by %d.",
                           STR_ARG(w->k.name), g->tile_m, g->tile_n, g->threads, g->tile_k));
    slots_put(to, "name", name);
    slots_put(to, "operand", str_view(paths[g->path].operand));
    slots_number(to, "bm", g->tile_m);
    slots_number(to, "bn", g->tile_n);
    slots_number(to, "bk", g->tile_k);
    slots_number(to, "stages", g->stages);
    slots_number(to, "folds", (int64_t)w->c->nfolds);
    slots_number(to, "na", (int64_t)contraction_side_count(w, CON_M));
    slots_number(to, "nb", (int64_t)contraction_side_count(w, CON_N));
    slots_number(to, "a_tile", (int64_t)a->bytes);
    slots_number(to, "b_tile", (int64_t)b->bytes);
    slots_number(to, "promote", g->promote);
}

static void put_layouts(struct con_writer *w, struct slots *to) {
    const struct con_tile *a = contraction_side_tile(w, CON_M),
                          *b = contraction_side_tile(w, CON_N);
    struct mma_text mma = w->g.path == CON_SIMT ? simt_text(w) : warps_text(w);
    slots_put(to, "element", str_view(dtype_info(a->type)->cuda));
    slots_put(to, "layout",
              w->g.swizzle ? S("swizzled against bank conflicts")
                           : S("padded against bank conflicts"));
    slots_put(to, "swizzle_a", swizzle_text(w, a));
    slots_put(to, "swizzle_b", swizzle_text(w, b));
    slots_put(to, "rows_a", layout_text(w, a, true));
    slots_put(to, "rows_b", layout_text(w, b, true));
    slots_put(to, "layout_a", layout_text(w, a, false));
    slots_put(to, "layout_b", layout_text(w, b, false));
    slots_put(to, "threads", mma.threads);
    slots_put(to, "atom", str_view(paths[w->g.path].atom));
    slots_put(to, "atoms", mma.atoms);
    slots_put(to, "permutation", mma.permutation);
    slots_put(to, "fetch_a", fetch_text(w, a));
    slots_put(to, "fetch_b", fetch_text(w, b));
}

bool contraction_cute_config(struct con_writer *w, str name) {
    struct slots s = {.mem = w->sh->mem};
    put_common(w, name, &s);
    w->sh->half |= w->g.path == CON_F16;
    w->sh->bfloat |= w->g.path == CON_BF16 || w->g.path == CON_BF16X6;
    if (!w->g.warpgroup) {
        put_layouts(w, &s);
        return sheet_put(w->sh, "contraction/cute_config.cu", &s, &w->sh->functions);
    }
    slots_number(&s, "warpgroups", w->g.warpgroups);
    slots_number(&s, "parts", w->g.parts);
    slots_number(&s, "products", w->g.parts == 1 ? 1 : 6);
    slots_put(&s, "atom", warpgroup_atom(w));
    return sheet_put(w->sh, "contraction/cute_config_warpgroup.cu", &s, &w->sh->functions);
}

/* ---- functions ---- */

static str multiply_text(struct con_writer *w) {
    str once = sheet_render(w->sh, "contraction/cute_once.cu", NULL, 0);
    struct slot round[] = {{"once", once}};
    return w->g.path == CON_TF32 ? sheet_render(w->sh, "contraction/cute_round.cu", SLOTS(round))
           : w->g.path == CON_TF32X3 ? sheet_render(w->sh, "contraction/cute_thrice.cu", NULL, 0)
                                     : once;
}

static bool put_warpgroup(struct con_writer *w) {
    bool both = w->g.warpgroups == 2;
    str name = str_view(contraction_product(w));
    str mark = sheet_printf(w->sh, "void %.*s(", STR_ARG(name));
    struct slot loop[] = {
        {"name", name},
        {"fewer", both ? S("cutlass::arch::warpgroup_reg_dealloc<40>();") : S("")},
        {"more", both ? S("cutlass::arch::warpgroup_reg_alloc<232>();") : S("")},
    };
    sheet_include(w->sh, "cute/arch/copy_sm90_tma.hpp");
    if (both)
        sheet_include(w->sh, "cutlass/arch/reg_reconfig.h");
    return contraction_once(w, "contraction/cute_tensor.cu", "void gemm_copy_box(", NULL, 0) &&
           contraction_once(w, "contraction/cute_warpgroup.cu", mark.p, SLOTS(loop));
}

static bool put_tiled(struct con_writer *w) {
    str name = str_view(contraction_product(w));
    str mark = sheet_printf(w->sh, "void %.*s(", STR_ARG(name));
    bool rows = false, ones = false;
    for (size_t i = 0; i < w->c->noperands; i++) {
        rows |= w->g.tile[i].vector;
        ones |= !w->g.tile[i].vector && w->g.tile[i].async;
    }
    struct slot product[] = {
        {"name", name},
        {"multiply", multiply_text(w)},
        {"promotion", w->g.path == CON_SIMT
                          ? S("rounding errors grow with the number of terms")
                          : S("tensor cores cut off what their sums do not hold")},
    };
    return contraction_once(w, "contraction/cute_layouts.cu", "auto gemm_tile(", NULL, 0) &&
           (!rows ||
            contraction_once(
                w, w->c->taps ? "contraction/cute_copy16.cu" : "contraction/cute_copy_rows.cu",
                w->c->taps ? "void gemm_copy16(" : "void gemm_copy_rows(", NULL, 0)) &&
           (!ones ||
            contraction_once(w, "contraction/cute_copy4.cu", "void gemm_copy4(", NULL, 0)) &&
           contraction_once(w, "contraction/cute_loop.cu", "void gemm_loop(", NULL, 0) &&
           contraction_once(w, "contraction/cute_product.cu", mark.p, SLOTS(product));
}

bool contraction_cute_functions(struct con_writer *w) {
    bool rounds = w->g.warpgroup && w->g.path == CON_TF32; /* in the kernels that copy operands */
    sheet_include(w->sh, "cute/tensor.hpp");
    return contraction_once(w, "contraction/place.cu", "void gemm_place(", NULL, 0) &&
           (!rounds ||
            contraction_once(w, "contraction/tf32.cu", "unsigned gemm_tf32(", NULL, 0)) &&
           (w->g.warpgroup ? put_warpgroup(w) : put_tiled(w));
}

/* ---- loaders ---- */

bool contraction_cute_rows(struct con_writer *w, size_t operand, const struct con_rows *r,
                           struct buf *out) {
    const struct con_operand *o = &w->c->operands[operand];
    const struct con_tile *t = &w->g.tile[operand];
    str first = local(w, o->side == CON_M ? "first_m" : "first_n"), k0 = local(w, "k0");
    str end = w->total[o->side], k_end = local(w, "k_end");
    str side_left = sheet_printf(w->sh, "%.*s - %.*s", STR_ARG(end), STR_ARG(first));
    str k_left = sheet_printf(w->sh, "%.*s - %.*s", STR_ARG(k_end), STR_ARG(k0));
    str slow = t->k_runs ? first : k0, fast = t->k_runs ? k0 : first;
    struct slot slots[] = {
        {"tensor", w->c->in->task->tensors[o->read->ref].name},
        {"rows", number(w, t->rows)},
        {"row", number(w, t->row)},
        {"base", r->base},
        {"load", contraction_loader_name(w, "load", operand)},
        {"stage", local(w, "stage")},
        {"k0", k0},
        {"target", contraction_tile(w, operand)},
        {"threads", number(w, w->g.threads)},
        {"tiles", local(w, "Tiles")},
        {"side", o->side == CON_M ? S("A") : S("B")},
        {"type", str_view(dtype_info(t->type)->cuda)},
        {"index", str_view(w->index)},
        {"to", local(w, "to")},
        {"pointer", r->pointer},
        {"source", sheet_printf(w->sh, "(%s)%.*s * %.*s + %.*s", w->index, STR_ARG(slow),
                                STR_ARG(r->pitch), STR_ARG(fast))},
        {"pitch", r->pitch},
        {"rows_left", t->k_runs ? side_left : k_left},
        {"cols_left", t->k_runs ? k_left : side_left},
    };
    return sheet_template(w->sh, "contraction/cute_load_rows.cu", SLOTS(slots), out);
}
