/* Tensor cores by mma.sync: warps side by side, fragments by ldmatrix. Operands of 4 bytes are
 * rounded to TF32, or split into two TF32 numbers with three products. */
#include "agent/expert/contraction/contraction.h"

static bool fits(const struct con_config *g) {
    return g->tensor_path == 1;
}

void con_shape_warps(struct con_config *g, int warps) {
    int best = 1 << 30;
    BUG_IF(warps < 1);
    for (int m = 1, n = warps; n > 0; m *= 2, n /= 2) {
        int wm = g->tile_m / m, wn = g->tile_n / n;
        if (wm % 16 || wn % 16 || wm < 16 || wn < 16 || wm + wn >= best)
            continue;
        best = wm + wn;
        g->warps_m = m;
        g->warps_n = n;
    }
    if (best == 1 << 30)
        con_shape_warps(g, warps / 2);
    else
        g->threads = 32 * g->warps_m * g->warps_n;
}

static bool write_warp(struct con_writer *w, struct slots *kernel, struct slots *tiles) {
    struct slots loop = con_slots(w);
    const struct con_format_info *f = &con_formats[w->g.format];
    slots_put(
        tiles, "math",
        sheet_printf(w->sh,
                     "static constexpr int WM = %d, WN = %d; // of a warp\n"
                     "static constexpr bool A_ALONG_K = %s, B_ALONG_K = %s; // rows of a tile",
                     w->g.tile_m / w->g.warps_m, w->g.tile_n / w->g.warps_n,
                     con_side_tile(&w->g, CON_M)->k_contiguous ? "true" : "false",
                     con_side_tile(&w->g, CON_N)->k_contiguous ? "true" : "false"));
    slots_put(&loop, "type", str_view(f->type));
    slots_number(&loop, "step", f->k);
    return (f->tile != DTYPE_F32 || con_rounding(w)) &&
           sheet_function(w->sh, "contraction/fragments.cu", &loop) &&
           sheet_function(w->sh, "contraction/mma_instruction.cu", &loop) &&
           con_ring(w, "contraction/warp.cu", &loop, kernel, tiles);
}

const struct con_math con_math_warp = {.rank = 40,
                                       .fits = fits,
                                       .shape = con_shape_warps,
                                       .lay_out = con_lay_rows,
                                       .write = write_warp};
