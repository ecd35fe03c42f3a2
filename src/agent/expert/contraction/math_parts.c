/* Class fp32 by wgmma as three f16 products for one: the parts of two numbers, scaled by powers of
 * two (parts.c). A tile of k in which some number is none that f16 parts hold is multiplied as six
 * bf16 products, in the same kernel, so that accuracy does not depend on data. */
#include "agent/expert/contraction/contraction.h"

static bool fits(const struct con_config *g) {
    return g->format == CON_F16X3;
}

static bool write_parts(struct con_writer *w, struct slots *kernel, struct slots *tiles) {
    struct slots loop = con_slots(w), wide = loop;
    str name = sheet_printf(w->sh, "gemm_parts_%d_%d", w->g.tile_n, w->g.warpgroups);
    slots_number(&loop, "warpgroups", w->g.warpgroups);
    slots_number(&loop, "parts", con_formats[CON_F16X3].parts);
    slots_number(&loop, "products", con_formats[CON_F16X3].products);
    slots_flag(kernel, "shifts", true);
    slots_put(kernel, "main_loop", name);
    slots_put(kernel, "load_parameters", S("unsigned to, int k0, int pass, unsigned barrier"));
    slots_put(tiles, "math", sheet_lines(w->sh, "contraction/tiles_warpgroup.cu", &loop));
    if (!con_put_wgmma(w, "bf16", &wide) || !con_put_wgmma(w, "f16", &loop))
        return false;
    slots_put(&loop, "name", name);
    slots_flag(&loop, "two", w->g.warpgroups == 2);
    slots_put(&loop, "wide_wgmma", slots_get(&wide, "wgmma"));
    return sheet_function(w->sh, "contraction/warpgroup_parts.cu", &loop);
}

const struct con_math con_math_parts = {.rank = 5,
                                        .boxes = true,
                                        .fits = fits,
                                        .shape = con_shape_groups,
                                        .lay_out = con_lay_boxes,
                                        .write = write_parts};
