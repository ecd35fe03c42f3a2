/* Products in CuTe: the struct of tiles as shared layouts, a TiledMMA and copy atoms, the functions
 * that work on it, and the loader of dense operands as a TiledCopy.
 *
 * The kernel around them, the loaders that compute each place, and what is done with the sums are
 * the text of the CUDA dialect: they reach a tile through RowsA and RowsB, which are CuTe layouts
 * here. */
#include "agent/expert/contraction.h"
#include "agent/expert/expert.h"

#define SLOTS(array) (array), sizeof(array) / sizeof *(array)

static str number(struct con_writer *w, long long v) {
    return sheet_printf(w->sh, "%lld", v);
}
static str local(struct con_writer *w, const char *name) {
    return contraction_local(w, name);
}
static int log2_of(int v) {
    return v > 1 ? 1 + log2_of(v / 2) : 0;
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
};

/* Rows along k are what ldmatrix expects; others it transposes, elements of 4 bytes excepted. */
static str fetch_text(struct con_writer *w, const struct con_tile *t) {
    const char *operand = paths[w->g.path].operand;
    const char *copy = w->g.path == CON_SIMT ? "cute::UniversalCopy<float>"
                       : t->k_runs           ? "cute::SM75_U32x4_LDSM_N"
                       : w->g.element == 2   ? "cute::SM75_U16x8_LDSM_T"
                                             : "cute::UniversalCopy<cute::tfloat32_t>";
    return sheet_printf(w->sh, "cute::Copy_Atom<%s, %s>", copy, operand);
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

/* ---- the struct of tiles ---- */

bool contraction_cute_config(struct con_writer *w, str name) {
    const struct con_config *g = &w->g;
    const struct con_tile *a = contraction_side_tile(w, CON_M),
                          *b = contraction_side_tile(w, CON_N);
    struct mma_text mma = g->path == CON_SIMT ? simt_text(w) : warps_text(w);
    struct slot slots[] = {
        {"about", sheet_printf(w->sh, "Tiles of %.*s: %d x %d results of %d threads, k by %d.",
                               STR_ARG(w->k.name), g->tile_m, g->tile_n, g->threads, g->tile_k)},
        {"name", name},
        {"element", str_view(dtype_info(a->type)->cuda)},
        {"operand", str_view(paths[g->path].operand)},
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
        {"layout",
         g->swizzle ? S("swizzled against bank conflicts") : S("padded against bank conflicts")},
        {"swizzle_a", swizzle_text(w, a)},
        {"swizzle_b", swizzle_text(w, b)},
        {"rows_a", layout_text(w, a, true)},
        {"rows_b", layout_text(w, b, true)},
        {"layout_a", layout_text(w, a, false)},
        {"layout_b", layout_text(w, b, false)},
        {"threads", mma.threads},
        {"atom", str_view(paths[g->path].atom)},
        {"atoms", mma.atoms},
        {"permutation", mma.permutation},
        {"fetch_a", fetch_text(w, a)},
        {"fetch_b", fetch_text(w, b)},
    };
    w->sh->half |= a->type == DTYPE_F16;
    w->sh->bfloat |= a->type == DTYPE_BF16;
    return sheet_template(w->sh, "cute_gemm_config.cu", SLOTS(slots), &w->sh->functions);
}

/* ---- functions ---- */

static str multiply_text(struct con_writer *w) {
    str once = sheet_render(w->sh, "cute_gemm_once.cu", NULL, 0);
    struct slot round[] = {{"once", once}};
    return w->g.path == CON_TF32     ? sheet_render(w->sh, "cute_gemm_round.cu", SLOTS(round))
           : w->g.path == CON_TF32X3 ? sheet_render(w->sh, "cute_gemm_thrice.cu", NULL, 0)
                                     : once;
}

bool contraction_cute_functions(struct con_writer *w) {
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
    sheet_include(w->sh, "cute/tensor.hpp");
    return contraction_once(w, "gemm_place.cu", "void gemm_place(", NULL, 0) &&
           contraction_once(w, "cute_gemm_layouts.cu", "auto gemm_tile(", NULL, 0) &&
           (!rows || !w->c->taps ||
            contraction_once(w, "cute_gemm_copy16.cu", "void gemm_copy16(", NULL, 0)) &&
           (!rows ||
            contraction_once(w, "cute_gemm_copy_rows.cu", "void gemm_copy_rows(", NULL, 0)) &&
           (!ones || contraction_once(w, "cute_gemm_copy4.cu", "void gemm_copy4(", NULL, 0)) &&
           contraction_once(w, "cute_gemm_loop.cu", "void gemm_loop(", NULL, 0) &&
           contraction_once(w, "cute_gemm_product.cu", mark.p, SLOTS(product));
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
    return sheet_template(w->sh, "cute_gemm_load_rows.cu", SLOTS(slots), out);
}
