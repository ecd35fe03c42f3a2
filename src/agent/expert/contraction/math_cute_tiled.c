/* Products by a TiledMMA of CuTe: multiply-adds, or SM80 atoms fed by ldmatrix. Tiles in shared
 * memory are layouts, which the sources that compute each place use too. */
#include "agent/expert/contraction/contraction.h"

static bool fits(const struct con_config *g) {
    return g->cute && g->tensor_path < 2;
}

static void shape(struct con_config *g, int warps) {
    if (g->tensor_path == 0)
        con_shape_threads(g, warps);
    else
        con_shape_warps(g, warps);
}

static int log2_of(int v) {
    int n = 0;
    while (v >> (n + 1))
        n++;
    return n;
}

/* Pieces of 16 bytes exchanged within a row so that what is read together lies in all banks: eight
 * rows at one place for ldmatrix, four rows of k at eight places for single loads of 4 bytes. */
static str swizzle_text(struct con_writer *w, const struct con_tile *t) {
    int pieces = t->row * w->g.element / 16, row = log2_of(t->row * w->g.element);
    if (!w->g.swizzle)
        return S("cute::Swizzle<0, 4, 3>");
    if (w->g.element == 4 && !t->k_contiguous)
        return sheet_printf(w->sh, "cute::Swizzle<2, 5, %d>", row - 5);
    return pieces < 8 ? sheet_printf(w->sh, "cute::Swizzle<%d, 4, 3>", log2_of(pieces))
                      : sheet_printf(w->sh, "cute::Swizzle<3, 4, %d>", row - 4);
}

/* Rows along k are what ldmatrix expects; others it transposes, elements of 4 bytes excepted. */
static str fetch_text(const struct con_writer *w, const struct con_tile *t) {
    return w->g.format == CON_FP32 ? S("void")
           : t->k_contiguous       ? S("cute::SM75_U32x4_LDSM_N")
           : w->g.element == 2     ? S("cute::SM75_U16x8_LDSM_T")
                                   : S("void");
}

static void put_side(struct con_writer *w, enum con_axis side, struct slots *to) {
    const struct con_tile *t = con_side_tile(&w->g, side);
    str sizes = sheet_printf(w->sh, "<%d, %d, %d>", t->rows, t->row, t->pitch);
    slots_put(to, "side", side == CON_M ? S("A") : S("B"));
    slots_put(to, "place", side == CON_M ? S("a_at") : S("b_at"));
    slots_put(to, "swizzle", swizzle_text(w, t));
    slots_put(to, "rows", TEXT(w->sh, "gemm_rows$", sizes));
    slots_put(to, "layout", TEXT(w->sh, t->k_contiguous ? "gemm_rows$" : "gemm_columns$", sizes));
    slots_put(to, "fetch", fetch_text(w, t));
}

static bool write_cute(struct con_writer *w, struct slots *kernel, struct slots *tiles) {
    struct slots loop = con_slots(w);
    const struct con_format_info *f = &con_formats[w->g.format];
    int tm, tn;
    con_thread_tile(&w->g, &tm, &tn);
    slots_put(&loop, "operand", str_view(f->cute_operand));
    slots_put(&loop, "atom", str_view(f->cute_atom));
    slots_flag(&loop, "warps", w->g.tensor_path == 1);
    slots_number(&loop, "down", w->g.tensor_path ? w->g.warps_m : w->g.tile_m / tm);
    slots_number(&loop, "across", w->g.tensor_path ? w->g.warps_n : w->g.tile_n / tn);
    slots_number(&loop, "tm", tm);
    slots_number(&loop, "tn", tn);
    slots_number(&loop, "tile_m", 16 * w->g.warps_m);
    slots_number(&loop, "tile_n", 16 * w->g.warps_n);
    slots_number(&loop, "step", f->k);
    put_side(w, CON_M, slots_row(&loop, "sides"));
    put_side(w, CON_N, slots_row(&loop, "sides"));
    slots_put(tiles, "math", sheet_lines(w->sh, "contraction/tiles_cute.cu", &loop));
    sheet_include(w->sh, "cute/tensor.hpp");
    bool ok = sheet_function(w->sh, "contraction/cute_layouts.cu", &loop) &&
              con_ring(w, "contraction/cute_tiled.cu", &loop, kernel, tiles);
    slots_put(tiles, "a_at", S("")); /* by the layouts */
    return ok;
}

const struct con_math con_math_cute_tiled = {
    .rank = 20, .fits = fits, .shape = shape, .lay_out = con_lay_rows, .write = write_cute};
