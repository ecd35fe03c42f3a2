/* fp32 multiply-adds: every thread has a block of results in registers. */
#include "agent/expert/contraction/contraction.h"

static bool fits(const struct con_config *g) {
    return g->tensor_path == 0;
}

void con_shape_threads(struct con_config *g, int warps) {
    while (warps > 1 && g->tile_m * g->tile_n / (32 * warps) < 16)
        warps /= 2;
    g->threads = 32 * warps;
}

void con_thread_tile(const struct con_config *g, int *tm, int *tn) {
    int each = g->tile_m * g->tile_n / g->threads;
    *tm = each >= 64 ? 8 : 4;
    *tn = each / *tm;
}

static bool write_simt(struct con_writer *w, struct slots *kernel, struct slots *tiles) {
    struct slots loop = con_slots(w);
    int tm, tn;
    con_thread_tile(&w->g, &tm, &tn);
    slots_put(tiles, "math",
              sheet_printf(w->sh, "static constexpr int TM = %d, TN = %d; // of a thread", tm, tn));
    return con_ring(w, "contraction/simt.cu", &loop, kernel, tiles);
}

const struct con_math con_math_simt = {.rank = 30,
                                       .fits = fits,
                                       .shape = con_shape_threads,
                                       .lay_out = con_lay_rows,
                                       .write = write_simt};
