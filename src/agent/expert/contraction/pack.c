/* Operands copied into rows along k, by a kernel before the product.
 *
 * The copy has the type of the tile, is rounded where the tensor core would cut off, has zeros
 * where terms are left out and at the ends of its rows, and its rows begin at multiples of 16
 * bytes. Whatever the operand was, a transposed matrix, a filter in a layout of its own, rows of
 * odd length, bytes, the product reads plain rows. The copy of a parameter is made once. */
#include "agent/expert/contraction/contraction.h"

str con_pitch(struct con_writer *w) {
    if (w->c->taps)
        return con_depth_plan(w);
    str k = sheet_plan(w->sh, w->c->group[CON_K].total),
        piece = sheet_number(w->sh, 16 / w->g.element);
    return TEXT(w->sh, "ceil_div($, $)*$", k, piece, piece);
}

/* wgmma cuts off what TF32 does not hold. */
static bool is_rounded(const struct con_writer *w) {
    return w->g.math->boxes && w->g.format == CON_TF32;
}

/* Threads run along what runs in memory: the tile is written one way and read the other. */
bool con_copies_along_k(const struct con_operand *o) {
    return o->dense ? o->k_contiguous : o->factor->kind != EXPR_PAD;
}

void con_put_copied(struct con_writer *w, const struct con_operand *o, enum dtype kept, str row,
                    str col, str depth, struct slots *s) {
    str slab, side, k;
    slots_put(s, "row", row);
    slots_put(s, "col", col);
    slots_put(s, "decode_batch", con_decode(w, CON_BATCH, S("slab"), &slab));
    str sides = con_decode(w, o->side, TEXT(w->sh, "first + $", row), &side);
    str ks = con_decode(w, CON_K, TEXT(w->sh, "k0 + $", col), &k);
    slots_put(s, "decode", sheet_join(w->sh, sides, "\n", ks));
    slots_put(s, "exists", con_exists(w, o, side, k, depth));
    str value = con_element(w, o, kept);
    slots_put(s, "value",
              is_rounded(w) ? TEXT(w->sh, "__uint_as_float(gemm_tf32($))", value) : value);
}

bool con_is_once(const struct con_writer *w) {
    bool once = !w->sh->before;
    for (size_t i = 0; once && i < TASK_MAX_TENSORS; i++)
        if (w->k.tensors >> i & 1)
            once = w->c->in->task->tensors[i].role == TENSOR_PARAM;
    return once;
}

/* The plan name of the copy. */
static str put_plan(struct con_writer *w, const struct con_operand *o, str pitch) {
    str args = scope_args(&w->k), side = sheet_plan(w->sh, w->c->group[o->side].total),
        batch = sheet_plan(w->sh, w->c->group[CON_BATCH].total);
    int parts = con_formats[w->g.format].parts;
    bool alone = str_is(batch, "1");
    str times = alone ? S("") : TEXT(w->sh, "$*", batch);
    if (!w->k.wide)
        sheet_require_for(w->sh, SCOPE_INT_WHY, "%.*s%.*s*%.*s <= 1073741824", STR_ARG(times),
                          STR_ARG(side), STR_ARG(pitch));
    str slabs = parts == 1 ? batch : TEXT(w->sh, "$$", times, sheet_number(w->sh, parts));
    str tensor = w->c->in->task->tensors[o->read->ref].name,
        type = str_view(dtype_info(w->g.type)->name);
    str packed = sheet_scratch(w->sh, TEXT(w->sh, "packed_$", tensor),
                               TEXT(w->sh, "[$, $, $] : $", slabs, side, pitch, type));
    str launch = sheet_printf(
        w->sh, "launch %.*s<<<%.*sceil_div(%.*s, 32)*ceil_div(%.*s, 32), 256>>>(%.*s, %.*s)",
        STR_ARG(w->k.name), STR_ARG(times), STR_ARG(pitch), STR_ARG(side), STR_ARG(args),
        STR_ARG(packed));
    if (con_is_once(w))
        sheet_once(w->sh, "%.*s", STR_ARG(launch));
    else
        sheet_step(w->sh, "%.*s", STR_ARG(launch));
    return packed;
}

static bool put_kernel(struct con_writer *w, const struct con_operand *o, str *packed) {
    struct slots s = con_slots(w);
    bool split = con_formats[w->g.format].parts > 1;
    enum dtype kept = split ? DTYPE_F32 : w->g.type;
    str plan = con_pitch(w), pitch = scope_int_plan(&w->k, "pitch", plan);
    bool along_k = con_copies_along_k(o);
    con_put_copied(w, o, kept, along_k ? S("turn * 8 + tid / 32") : S("tid % 32"),
                   along_k ? S("tid % 32") : S("turn * 8 + tid / 32"),
                   w->c->taps ? pitch : w->total[CON_K], &s);
    slots_put(&s, "tensor", w->c->in->task->tensors[o->read->ref].name);
    slots_put(&s, "what",
              split           ? S("split into three bf16 numbers")
              : is_rounded(w) ? S("rounded to TF32")
                              : S("in the type that is multiplied"));
    slots_flag(&s, "splits", split);
    slots_put(&s, "parameters", scope_params(&w->k));
    slots_put(&s, "packed", *packed = put_plan(w, o, plan));
    slots_put(&s, "element", str_view(dtype_info(kept)->cuda));
    slots_put(&s, "width", kept == DTYPE_F32 ? S("33") : S("34"));
    slots_put(&s, "pitch", pitch);
    slots_put(&s, "total", w->total[o->side]);
    slots_put(&s, "zero", str_view(con_zero(kept)));
    return (!is_rounded(w) || con_rounding(w)) &&
           sheet_put(w->sh, "contraction/pack.cu", &s, &w->sh->kernels);
}

struct con_writer *con_copier(struct con_writer *w, size_t operand) {
    struct con_writer *own = arena_new_of(w->sh->mem, struct con_writer);
    struct contraction *part = arena_new_of(w->sh->mem, struct contraction);
    *own = *w;
    own->listed = false;
    *part = *w->c;
    own->c = part;
    con_batch(w->c, &w->c->operands[operand], &part->group[CON_BATCH]);
    return own;
}

bool con_pack(struct con_writer *w, size_t operand) {
    const struct con_operand *o = &w->c->operands[operand];
    struct con_writer *own = con_copier(w, operand);
    str tensor = w->c->in->task->tensors[o->read->ref].name;
    return con_begin(own, TEXT(w->sh, "pack_$", tensor), 1u << o->side | 1u << CON_K) &&
           put_kernel(own, o, &w->packed[operand]);
}
