/* Operands copied into rows along k, by a kernel before the product.
 *
 * The copy has the type of the tile, is rounded where the tensor core would cut off, has zeros
 * where terms are left out and at the ends of its rows, and its rows begin at multiples of 16
 * bytes. Whatever the operand was, a transposed matrix, a filter in a layout of its own, rows of
 * odd length, bytes, the product reads plain rows. */
#include "agent/expert/contraction/contraction.h"
#include "agent/expert/expert.h"

static str local(struct con_writer *w, const char *name) {
    return contraction_local(w, name);
}

str contraction_pitch(struct con_writer *w) {
    int piece = 16 / w->g.element;
    if (w->c->taps)
        return contraction_depth_plan(w);
    str k = sheet_plan(w->sh, w->c->group[CON_K].total);
    return sheet_printf(w->sh, "ceil_div(%.*s, %d)*%d", STR_ARG(k), piece, piece);
}

/* ---- which copy ---- */

static str index_text(struct con_writer *w, const struct con_index *x) {
    return x->part == CON_WHOLE ? w->k.var[x->var] : contraction_part(w, x);
}

static str horner(struct con_writer *w, str sum, str at, const struct expr *extent) {
    if (!sum.n)
        return at;
    str size = scope_int(&w->k, extent);
    return sheet_printf(w->sh, "(%.*s * %.*s + %.*s)", STR_ARG(sum), STR_ARG(size), STR_ARG(at));
}

str contraction_slab(struct con_writer *w, size_t operand) {
    const struct con_operand *o = &w->c->operands[operand];
    const struct tensor *t = &w->c->in->task->tensors[o->read->ref];
    str s = S("");
    if (w->g.tile[operand].packed) {
        struct con_group batch;
        contraction_batch(w->c, o, &batch);
        for (size_t i = 0; i < batch.n; i++)
            s = horner(w, s, index_text(w, &batch.at[i]), batch.at[i].extent);
        return s;
    }
    for (int d = 0; d < o->first; d++) {
        str at = scope_text(&w->k, o->read->args[d]);
        s = horner(w, s, o->read->args[d]->nargs ? sheet_printf(w->sh, "(%.*s)", STR_ARG(at)) : at,
                   t->extent[d]);
    }
    return s;
}

/* ---- tensor maps ---- */

static str extents_between(struct con_writer *w, const struct con_operand *o, int from, int to) {
    const struct tensor *t = &w->c->in->task->tensors[o->read->ref];
    str s = S("");
    for (int d = from; d < to; d++) {
        str one = sheet_plan(w->sh, t->extent[d]);
        s = sheet_printf(w->sh, "%.*s%s%.*s", STR_ARG(s), s.n ? "*" : "", STR_ARG(one));
    }
    return s.n ? s : S("1");
}

/* A map's name in the plan: the parameter's, unless another product of the file has that for
 * another map. */
static str map_name(struct con_writer *w, str parameter, str map) {
    str plan = buf_str(&w->sh->memory);
    str taken = sheet_printf(w->sh, "tensormap %.*s = ", STR_ARG(parameter));
    str same = sheet_printf(w->sh, "%.*s%.*s\n", STR_ARG(taken), STR_ARG(map));
    bool free = str_find(plan, taken) == plan.n || str_find(plan, same) < plan.n;
    return free ? parameter : sheet_name(w->sh, parameter);
}

static str map_text(struct con_writer *w, size_t operand) {
    const struct con_operand *o = &w->c->operands[operand];
    const struct con_tile *t = &w->g.tile[operand];
    if (t->packed)
        return sheet_printf(w->sh, "tiled(%.*s, box=[%d, %d, 1], swizzle=128)",
                            STR_ARG(w->packed[operand]), t->row, t->rows);
    str k = extents_between(w, o, o->k_first, o->k_last + 1);
    str rows = extents_between(w, o, o->first, o->last + 1);
    str lead = extents_between(w, o, 0, o->first);
    str tensor = sheet_tensor(w->sh, w->step, o->read->ref);
    sheet_require(w->sh, "%.*s %% 8 == 0", STR_ARG(k));
    return sheet_printf(w->sh,
                        "tiled(%.*s, box=[%d, %d, 1], shape=[%.*s, %.*s, %.*s], swizzle=128)",
                        STR_ARG(tensor), t->row, t->rows, STR_ARG(k), STR_ARG(rows), STR_ARG(lead));
}

str contraction_map(struct con_writer *w, size_t operand) {
    str parameter = contraction_loader_name(w, "map", operand), text = map_text(w, operand);
    str map = map_name(w, parameter, text);
    sheet_memory(w->sh, "tensormap %.*s = %.*s", STR_ARG(map), STR_ARG(text));
    buf_printf(&w->params, "const __grid_constant__ CUtensorMap %.*s, ", STR_ARG(parameter));
    buf_printf(&w->args, "%.*s, ", STR_ARG(map));
    return parameter;
}

/* ---- the kernel ---- */

struct pack_text {
    str batch, decode, test, value, row, col;
};

/* Threads run along what runs in memory: the tile is written one way and read the other. */
static void pack_text(struct con_writer *w, const struct con_operand *o, bool along_k, str pitch,
                      struct pack_text *to) {
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    str tid = local(w, "tid"), i = local(w, "i"), k0 = local(w, "k0"), first = local(w, "first");
    str fast = sheet_printf(w->sh, "%.*s %% 32", STR_ARG(tid));
    str slow = sheet_printf(w->sh, "%.*s * 8 + %.*s / 32", STR_ARG(i), STR_ARG(tid));
    to->row = along_k ? slow : fast;
    to->col = along_k ? fast : slow;
    contraction_decode(w, CON_BATCH, local(w, "slab"), &b);
    to->batch = sheet_keep(w->sh, &b);
    str side = contraction_decode(
        w, o->side, sheet_printf(w->sh, "%.*s + %.*s", STR_ARG(first), STR_ARG(to->row)), &b);
    str k = contraction_decode(
        w, CON_K, sheet_printf(w->sh, "%.*s + %.*s", STR_ARG(k0), STR_ARG(to->col)), &b);
    to->decode = sheet_keep(w->sh, &b);
    buf_printf(&b, "%.*s < %.*s && %.*s < %.*s", STR_ARG(side), STR_ARG(w->total[o->side]),
               STR_ARG(k), STR_ARG(w->c->taps ? pitch : w->total[CON_K]));
    if (w->c->taps)
        buf_puts(&b, contraction_rest(w));
    contraction_exists(w, o, &b);
    to->test = sheet_keep(w->sh, &b);
    to->value = contraction_value(w, o,
                                  w->g.element == 4 || w->g.parts > 1 ? DTYPE_F32
                                  : w->g.path == CON_F16              ? DTYPE_F16
                                                                      : DTYPE_BF16);
    if (w->g.warpgroup && w->g.path == CON_TF32)
        to->value = sheet_printf(w->sh, "__uint_as_float(gemm_tf32(%.*s))", STR_ARG(to->value));
    buf_release(&b);
}

/* From the tile to the copy. */
static str store_text(struct con_writer *w, str packed, enum con_axis side, str pitch) {
    struct slot slots[] = {
        {"packed", packed},        {"tile", local(w, "tile")}, {"tid", local(w, "tid")},
        {"k0", local(w, "k0")},    {"pitch", pitch},           {"slab", local(w, "slab")},
        {"total", w->total[side]}, {"i", local(w, "i")},       {"at", local(w, "at")},
    };
    return sheet_render(w->sh,
                        w->g.parts > 1 ? "contraction/pack_parts.cu" : "contraction/pack_one.cu",
                        slots, sizeof slots / sizeof *slots);
}

static bool put_pack(struct con_writer *w, size_t operand, str packed) {
    const struct con_operand *o = &w->c->operands[operand];
    struct pack_text text;
    bool along_k = o->dense ? o->k_runs : o->factor->kind != EXPR_PAD;
    str pitch_plan = contraction_pitch(w), pitch = scope_int_plan(&w->k, "pitch", pitch_plan);
    bool split = w->g.parts > 1;
    enum dtype type = w->g.tile[operand].type, kept = split ? DTYPE_F32 : type;
    pack_text(w, o, along_k, pitch, &text);
    struct slot slots[] = {
        {"tensor", w->c->in->task->tensors[o->read->ref].name},
        {"what", split                                     ? S("split into three bf16 numbers")
                 : w->g.warpgroup && w->g.path == CON_TF32 ? S("rounded to TF32")
                                                           : S("in the type that is multiplied")},
        {"kernel", w->k.name},
        {"parameters", scope_params(&w->k)},
        {"type", str_view(dtype_info(type)->cuda)},
        {"packed", packed},
        {"tile", local(w, "tile")},
        {"element", str_view(dtype_info(kept)->cuda)},
        {"width", kept == DTYPE_F32 ? S("33") : S("34")},
        {"tid", local(w, "tid")},
        {"k0", local(w, "k0")},
        {"pitch", pitch},
        {"index", str_view(w->index)},
        {"slab", local(w, "slab")},
        {"total", w->total[o->side]},
        {"first", local(w, "first")},
        {"batch", text.batch},
        {"i", local(w, "i")},
        {"decode", text.decode},
        {"exists", local(w, "exists")},
        {"test", text.test},
        {"row", text.row},
        {"col", text.col},
        {"value", text.value},
        {"zero", str_view(contraction_zero(kept))},
        {"store", store_text(w, packed, o->side, pitch)},
        {"at", local(w, "at")},
    };
    str args = scope_args(&w->k), side = sheet_plan(w->sh, w->c->group[o->side].total),
        batch = sheet_plan(w->sh, w->c->group[CON_BATCH].total);
    bool alone = str_is(batch, "1");
    str times = alone ? S("") : sheet_printf(w->sh, "%.*s*", STR_ARG(batch));
    if (!w->k.wide)
        sheet_require(w->sh, "%.*s%.*s*%.*s <= 1073741824", STR_ARG(times), STR_ARG(side),
                      STR_ARG(pitch_plan));
    str slabs = !split  ? batch
                : alone ? sheet_printf(w->sh, "%d", w->g.parts)
                        : sheet_printf(w->sh, "%.*s%d", STR_ARG(times), w->g.parts);
    sheet_memory(w->sh, "workspace %.*s[%.*s, %.*s, %.*s] : %s", STR_ARG(packed), STR_ARG(slabs),
                 STR_ARG(side), STR_ARG(pitch_plan), dtype_info(type)->name);
    sheet_step(w->sh, "launch %.*s<<<%.*sceil_div(%.*s, 32)*ceil_div(%.*s, 32), 256>>>(%.*s, %.*s)",
               STR_ARG(w->k.name), STR_ARG(times), STR_ARG(pitch_plan), STR_ARG(side),
               STR_ARG(args), STR_ARG(packed));
    return sheet_template(w->sh, "contraction/pack.cu", slots, sizeof slots / sizeof *slots,
                          &w->sh->kernels);
}

bool contraction_pack(struct con_writer *w, size_t operand) {
    const struct con_operand *o = &w->c->operands[operand];
    struct con_writer *own = arena_new_of(w->sh->mem, struct con_writer);
    struct contraction *part = arena_new_of(w->sh->mem, struct contraction);
    str tensor = w->c->in->task->tensors[o->read->ref].name;
    *own = *w;
    own->listed = false;
    *part = *w->c;
    own->c = part;
    contraction_batch(w->c, o, &part->group[CON_BATCH]);
    str packed = sheet_name(w->sh, sheet_printf(w->sh, "packed_%.*s", STR_ARG(tensor)));
    if (!scope_init(&own->k, w->sh, w->step, sheet_printf(w->sh, "pack_%.*s", STR_ARG(tensor)).p))
        return false;
    contraction_totals(own, 1u << o->side | 1u << CON_K);
    w->packed[operand] = packed;
    return put_pack(own, operand, packed);
}
