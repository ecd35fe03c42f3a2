/* What main loops have in common: the formats they multiply in, the ring of tiles that cp.async
 * fills, and the functions that go with it. */
#include "agent/expert/contraction/contraction.h"

#define TF32_ATOM "cute::tfloat32_t", "cute::SM80_16x8x8_F32TF32TF32F32_TN", 8

const struct con_format_info con_formats[] = {
    [CON_FP32] = {"fp32 multiply-adds", "fp32 multiply-adds", "simt", "", DTYPE_F32, 1, 1, "float",
                  "cute::UniversalFMA<float, float, float>", 1},
    [CON_TF32] = {"TF32", "tensor cores, operands rounded to TF32", "tf32", "tf32", DTYPE_F32, 1, 1,
                  TF32_ATOM},
    [CON_TF32X3] = {"three TF32 products for one of fp32",
                    "tensor cores, each operand split into two TF32 numbers", "3xtf32", "tf32",
                    DTYPE_F32, 1, 1, TF32_ATOM},
    [CON_BF16X6] = {"six bf16 products for one of fp32",
                    "tensor cores, each operand split into three bf16 numbers", "bf16x6", "bf16",
                    DTYPE_BF16, 3, 6, "cute::bfloat16_t", "", 16}, /* by warpgroups alone */
    [CON_F16X3] = {"three f16 products for one of fp32",
                   "tensor cores, each operand split into two f16 numbers", "f16x3", "f16",
                   DTYPE_F16, 2, 3, "cute::half_t", "", 16}, /* by warpgroups alone */
    [CON_F16] = {"f16", "tensor cores, f16 operands", "f16", "f16", DTYPE_F16, 1, 1, "cute::half_t",
                 "cute::SM80_16x8x16_F32F16F16F32_TN", 16},
    [CON_BF16] = {"bf16", "tensor cores, bf16 operands", "bf16", "bf16", DTYPE_BF16, 1, 1,
                  "cute::bfloat16_t", "cute::SM80_16x8x16_F32BF16BF16F32_TN", 16},
};

/* ---- functions ---- */

bool con_rounding(struct con_writer *w) {
    return sheet_function(w->sh, "contraction/tf32.cu", &(struct slots){.n = 0});
}

bool con_copy(struct con_writer *w, int bytes) {
    struct slots s = con_slots(w);
    slots_number(&s, "bytes", bytes);
    slots_put(&s, "cache", bytes == 16 ? S("cg") : S("ca"));
    slots_put(&s, "cute_cache", bytes == 16 ? S("CACHEGLOBAL") : S("CACHEALWAYS"));
    slots_put(&s, "type", bytes == 16 ? S("cute::uint128_t") : S("unsigned"));
    return sheet_function(w->sh, "contraction/copy.cu", &s);
}

/* ---- the ring of cp.async ---- */

/* Pieces of 16 bytes exchanged within a row so that what is read together lies in all banks: eight
 * rows at one place for ldmatrix, four rows of k at eight places for single loads. */
static str place_text(struct con_writer *w, const struct con_tile *t) {
    int piece = 16 / w->g.element, pieces = t->row / piece;
    str pitch = sheet_number(w->sh, t->pitch), size = sheet_number(w->sh, piece), by;
    if (!w->g.swizzle)
        return TEXT(w->sh, "row * $ + col", pitch);
    if (w->g.element == 4 && !t->k_contiguous)
        by = S("row % 4 * 2");
    else if (pieces >= 8)
        by = S("row % 8");
    else
        by = sheet_printf(w->sh, "row / %d %% %d", 8 / pieces, pieces);
    return TEXT(w->sh, "row * $ + (col / $ ^ $) * $ + col % $", pitch, size, by, size, size);
}

bool con_ring(struct con_writer *w, const char *template, struct slots *loop, struct slots *kernel,
              struct slots *tiles) {
    const struct con_format_info *f = &con_formats[w->g.format];
    str name =
        w->g.format == CON_TF32 ? S("gemm_tf32_product") : TEXT(w->sh, "gemm_$", str_view(f->loop));
    slots_put(tiles, "layout", w->g.swizzle ? S("swizzled") : S("with rows padded"));
    slots_put(tiles, "a_at", place_text(w, con_side_tile(&w->g, CON_M)));
    slots_put(tiles, "b_at", place_text(w, con_side_tile(&w->g, CON_N)));
    slots_put(kernel, "main_loop", name);
    slots_put(kernel, "load_parameters", S("int stage, int k0"));
    slots_flag(kernel, "keeps", true);
    slots_put(loop, "name", name);
    slots_flag(loop, "rounds", w->g.format == CON_TF32);
    slots_flag(loop, "splits", w->g.format == CON_TF32X3);
    slots_put(loop, "type", str_view(f->type));
    return sheet_function(w->sh, "contraction/loop.cu", loop) &&
           sheet_function(w->sh, template, loop);
}
