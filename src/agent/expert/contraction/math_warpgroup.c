/* Tensor cores by wgmma, in CUDA and in CuTe: one warpgroup keeps tiles on their way, one or two
 * multiply them. Operands of class fp32 are split into three bf16 numbers with six products. */
#include "agent/expert/contraction/contraction.h"
#include <string.h>

static bool fits(const struct con_config *g) {
    return g->tensor_path == 2;
}

void con_shape_groups(struct con_config *g, int warps) {
    (void)warps;
    g->tile_m = g->tile_m < 64 ? 64 : g->tile_m;
    g->tile_k = 128 / g->element;
    g->warpgroups = g->tile_m >= 128 ? 2 : 1;
    g->threads = 128 * g->warpgroups;
    g->producers = 128;
}

/* Rows of 128 bytes: along k, or 64 elements of the side at each of tile_k places. */
void con_lay_boxes(const struct con_config *g, int side, struct con_tile *t) {
    t->rows = t->k_contiguous ? side : g->tile_k;
    t->row = t->pitch = t->k_contiguous ? g->tile_k : 64;
    t->bytes = (size_t)(side * con_formats[g->format].parts) * 128;
}

/* The accumulators of the instruction: "%0, %1, …" and "+f"(d[0]), …. */
static void put_registers(struct con_writer *w, int n, struct slots *to) {
    str list = S(""), outputs = S("");
    for (int i = 0; i < n; i++) {
        list = sheet_printf(w->sh, "%.*s%s%%%d", STR_ARG(list),
                            i == 0       ? "\""
                            : i % 8 == 0 ? ", \"\n\""
                                         : ", ",
                            i);
        outputs = sheet_printf(w->sh, "%.*s%s\"+f\"(d[%d])", STR_ARG(outputs),
                               i == 0       ? ""
                               : i % 5 == 0 ? ",\n"
                                            : ", ",
                               i);
    }
    slots_put(to, "list", TEXT(w->sh, "$\"", list));
    slots_put(to, "outputs", outputs);
}

/* The tiles of a side are rows along the side. */
static bool is_across(const struct con_writer *w, enum con_axis side) {
    for (size_t i = 0; i < w->c->noperands; i++)
        if (w->c->operands[i].side == side)
            return w->g.tile[i].rows && !w->g.tile[i].k_contiguous;
    return false;
}

/* A part of names that says so: "", "_a", "_b" or "_ab". */
static str sides_across(const struct con_writer *w) {
    bool a = is_across(w, CON_M), b = is_across(w, CON_N);
    return a && b ? S("_ab") : a ? S("_a") : b ? S("_b") : S("");
}

bool con_put_wgmma(struct con_writer *w, const char *type, struct slots *loop) {
    int n = w->g.tile_n;
    bool tf32 = strcmp(type, "tf32") == 0;
    str columns = sheet_number(w->sh, n), sides = sides_across(w);
    slots_put(loop, "wgmma", TEXT(w->sh, "gemm_wgmma_$_$$", str_view(type), columns, sides));
    slots_put(loop, "columns", columns);
    slots_number(loop, "registers", n / 2);
    slots_number(loop, "b", n / 2 + 1);
    slots_number(loop, "add", n / 2 + 2);
    slots_put(loop, "step", tf32 ? S("8") : S("16"));
    slots_put(loop, "type", str_view(type));
    slots_put(loop, "order",
              tf32 ? S("")
                   : sheet_printf(w->sh, ", %d, %d", is_across(w, CON_M), is_across(w, CON_N)));
    put_registers(w, n / 2, loop);
    return sheet_function(w->sh, "contraction/warpgroup_functions.cu", loop) &&
           sheet_function(w->sh, "contraction/wgmma.cu", loop);
}

/* From one instruction's part of k to the next, in units of 16 bytes: 32 bytes of a row, or 16
 * rows. */
static str step_text(bool across) {
    return across ? S("128") : S("2");
}

static str major_text(bool across) {
    return across ? S("cute::GMMA::Major::MN") : S("cute::GMMA::Major::K");
}

static bool write_warpgroup(struct con_writer *w, struct slots *kernel, struct slots *tiles) {
    struct slots loop = con_slots(w);
    const struct con_format_info *f = &con_formats[w->g.format];
    bool cute = w->g.cute;
    str sides = sides_across(w);
    str name = sheet_printf(w->sh, "gemm_warpgroup_%s_%d_%d%.*s", f->loop, w->g.tile_n,
                            w->g.warpgroups, STR_ARG(sides)); /* one an instruction */
    slots_put(&loop, "name", name);
    slots_flag(&loop, "two", w->g.warpgroups == 2);
    slots_put(&loop, "operand", str_view(f->cute_operand));
    slots_number(&loop, "warpgroups", w->g.warpgroups);
    slots_number(&loop, "parts", f->parts);
    slots_number(&loop, "products", f->products);
    slots_flag(&loop, "tf32", w->g.format == CON_TF32);
    slots_put(&loop, "a_step", step_text(is_across(w, CON_M)));
    slots_put(&loop, "b_step", step_text(is_across(w, CON_N)));
    slots_put(&loop, "a_major", major_text(is_across(w, CON_M)));
    slots_put(&loop, "b_major", major_text(is_across(w, CON_N)));
    slots_flag(&loop, "a_across", is_across(w, CON_M));
    slots_flag(&loop, "b_across", is_across(w, CON_N));
    slots_put(&loop, "atom", w->g.format == CON_F16 ? S("F16F16") : S("BF16BF16"));
    slots_put(kernel, "main_loop", name);
    slots_put(kernel, "load_parameters",
              cute ? S("unsigned char *to, int k0, cute::uint64_t *barrier")
                   : S("unsigned to, int k0, unsigned barrier"));
    slots_put(tiles, "math", sheet_lines(w->sh, "contraction/tiles_warpgroup.cu", &loop));
    if (cute)
        sheet_include(w->sh, "cute/tensor.hpp");
    if (cute && w->g.warpgroups == 2)
        sheet_include(w->sh, "cutlass/arch/reg_reconfig.h");
    return (cute || con_put_wgmma(w, f->type, &loop)) &&
           sheet_function(
               w->sh, cute ? "contraction/cute_warpgroup.cu" : "contraction/warpgroup.cu", &loop);
}

const struct con_math con_math_warpgroup = {.rank = 10,
                                            .boxes = true,
                                            .fits = fits,
                                            .shape = con_shape_groups,
                                            .lay_out = con_lay_boxes,
                                            .write = write_warpgroup};
