/* The copies: the input with its channels innermost, and the filter as a matrix for each tap. That
 * of a parameter is made once. */
#include "agent/expert/convolution/convolution.h"

str conv_pitch(struct conv_writer *x) {
    str channels = sheet_plan(x->w.sh, x->v->channels.total),
        piece = sheet_number(x->w.sh, 16 / x->g.element);
    return TEXT(x->w.sh, "ceil_div($, $)*$", channels, piece, piece);
}

/* Whether the copy depends on parameters of the task alone, and its memory is shared with nothing:
 * then it need not be made again. */
static bool is_once(const struct conv_writer *x) {
    bool once = !x->w.sh->before;
    for (size_t i = 0; once && i < TASK_MAX_TENSORS; i++)
        if (x->w.k.tensors >> i & 1)
            once = x->v->c->in->task->tensors[i].role == TENSOR_PARAM;
    return once;
}

static bool put_common(struct conv_writer *x, const struct con_operand *o, struct slots *s) {
    bool rounded = x->g.format == CON_TF32;
    str value = con_element(&x->w, o, x->g.type);
    slots_put(s, "kernel", x->w.k.name);
    slots_put(s, "index", str_view(x->w.index));
    slots_put(s, "tensor", x->v->c->in->task->tensors[o->read->ref].name);
    slots_put(s, "type", str_view(dtype_info(x->g.type)->cuda));
    slots_put(s, "what", rounded ? S("rounded to TF32") : S("in the type that is multiplied"));
    slots_put(s, "zero", str_view(con_zero(x->g.type)));
    slots_put(s, "value", rounded ? TEXT(x->w.sh, "__uint_as_float(gemm_tf32($))", value) : value);
    x->w.sh->half |= x->g.type == DTYPE_F16;
    x->w.sh->bfloat |= x->g.type == DTYPE_BF16;
    return !rounded || con_rounding(&x->w);
}

static str put_copy(struct conv_writer *x, const struct con_operand *o, str extents, str blocks,
                    struct slots *s) {
    struct sheet *sh = x->w.sh;
    str tensor = x->v->c->in->task->tensors[o->read->ref].name, args = scope_args(&x->w.k);
    slots_put(s, "parameters", scope_params(&x->w.k));
    str copy = sheet_scratch(sh, TEXT(sh, "packed_$", tensor),
                             TEXT(sh, "[$] : $", extents, str_view(dtype_info(x->g.type)->name)));
    str launch = TEXT(sh, "launch $<<<$, 256>>>($, $)", x->w.k.name, blocks, args, copy);
    slots_put(s, "packed", copy);
    if (is_once(x))
        sheet_once(sh, "%.*s", STR_ARG(launch));
    else
        sheet_step(sh, "%.*s", STR_ARG(launch));
    return copy;
}

/* ---- the input ---- */

static str slabs_plan(struct conv_writer *x) {
    str images = sheet_plan(x->w.sh, x->v->images.total),
        batch = sheet_plan(x->w.sh, x->v->c->group[CON_BATCH].total),
        planes = sheet_number(x->w.sh, x->v->planes);
    str all = str_is(batch, "1")    ? images
              : str_is(images, "1") ? batch
                                    : TEXT(x->w.sh, "$*$", images, batch);
    return str_is(planes, "1") ? all : TEXT(x->w.sh, "$*$", all, planes);
}

/* The input's own indices, in the variables of the result. */
static str decode_position(struct conv_writer *x) {
    struct sheet *sh = x->w.sh;
    str lines = S("");
    int64_t parts = x->v->planes;
    for (size_t i = 0; i < x->v->naxes; i++) {
        const struct conv_axis *a = &x->v->axes[i];
        str value = S("position"), name = scope_variable(&x->w.k, a->out.var);
        struct expr *inner = conv_inner(x->v, i + 1);
        if (!expr_is_number(inner, 1))
            value = TEXT(sh, "$ / (int)$", value, scope_int(&x->w.k, inner));
        if (i > 0)
            value = TEXT(sh, "$ % (int)$", value, scope_int(&x->w.k, a->padded));
        if (a->stride > 1) {
            parts /= a->stride;
            str part = parts > 1 ? TEXT(sh, "plane_of_image / $", sheet_number(sh, parts))
                                 : S("plane_of_image");
            value = sheet_printf(sh, "%lld * (%.*s) + %.*s %% %lld", (long long)a->stride,
                                 STR_ARG(value), STR_ARG(part), (long long)a->stride);
        }
        if (a->first)
            value = sheet_printf(sh, "%.*s %c %lld", STR_ARG(value), a->first < 0 ? '-' : '+',
                                 (long long)(a->first < 0 ? -a->first : a->first));
        x->w.k.var[a->out.var] = name;
        lines = sheet_join(sh, lines, "\n", TEXT(sh, "const int $ = $;", name, value));
    }
    return lines;
}

static const struct conv_axis *axis_of(const struct convolution *v, size_t dim) {
    for (size_t i = 0; i < v->naxes; i++)
        if (v->axes[i].dim == dim)
            return &v->axes[i];
    return NULL;
}

/* Positions that no window touches may lie beyond the input where an axis is parted. */
static str input_exists(struct conv_writer *x, const struct con_operand *o) {
    const struct tensor *t = &x->v->c->in->task->tensors[o->read->ref];
    str s = S(""), type = x->w.k.wide ? S("unsigned long long") : S("unsigned");
    for (size_t d = 0; d < o->read->nargs; d++) {
        const struct conv_axis *a = axis_of(x->v, d);
        bool pad = o->factor->kind == EXPR_PAD;
        if (a ? pad || a->stride > 1 || a->spread > 1 : pad && con_can_leave(x->v->c, o, d))
            s = TEXT(x->w.sh, "$ && ($)($) < ($)$", s, type, scope_text(&x->w.k, o->read->args[d]),
                     type, scope_int(&x->w.k, t->extent[d]));
    }
    return s;
}

struct con_operand conv_by_place(const struct convolution *v) {
    struct arena *a = v->c->mem;
    struct con_operand o = *v->input;
    struct expr *read = arena_new_of(a, struct expr);
    *read = *v->input->read;
    read->args = arena_array(a, struct expr *, read->nargs);
    for (size_t d = 0; d < read->nargs; d++) {
        const struct conv_axis *x = axis_of(v, d);
        read->args[d] = x ? expr_variable(a, x->out.var) : v->input->read->args[d];
    }
    o.read = read;
    return o;
}

/* The tensor runs along channels in memory, not along positions. */
static bool is_along_channels(const struct conv_writer *x) {
    const struct expr *read = x->v->input->read;
    uint32_t vars = expr_vars(read->args[read->nargs - 1]);
    return (vars & con_vars(&x->v->channels, 0)) != 0;
}

bool conv_pack_input(struct conv_writer *x) {
    struct con_writer *w = &x->w;
    struct sheet *sh = w->sh;
    const struct con_operand place = conv_by_place(x->v), *o = &place;
    struct slots s = {.mem = sh->mem};
    str flat, tensor = w->c->in->task->tensors[o->read->ref].name, image = S("slab");
    int chunk = x->g.chunk;
    if (!con_begin(w, TEXT(sh, "pack_$", tensor), 1u << CON_BATCH))
        return false;
    if (x->v->planes > 1)
        image = TEXT(sh, "slab / $", sheet_number(sh, x->v->planes));
    bool grouped = w->c->group[CON_BATCH].n > 0;
    str batch = con_decode(w, CON_BATCH, TEXT(sh, "$ % $", image, w->total[CON_BATCH]), &flat);
    str images = con_decode_run(w, &x->v->images, 0, x->v->images.n, w->index,
                                grouped ? TEXT(sh, "($ / $)", image, w->total[CON_BATCH]) : image);
    if (x->v->planes > 1)
        images = TEXT(sh, "$\nconst int plane_of_image = (int)(slab % $);", images,
                      sheet_number(sh, x->v->planes));
    str plane = sheet_plan(sh, conv_plane(x->v)), pitch = conv_pitch(x);
    bool along = is_along_channels(x);
    slots_put(&s, "decode_slab", sheet_join(sh, batch, "\n", images));
    slots_put(&s, "decode_position", decode_position(x));
    slots_put(&s, "decode_channel",
              con_decode_run(w, &x->v->channels, 0, x->v->channels.n, "int", S("channel")));
    slots_put(&s, "row",
              along ? sheet_printf(sh, "turn * %d + tid / %d", 256 / chunk, chunk) : S("tid % 64"));
    slots_put(&s, "col", along ? sheet_printf(sh, "tid %% %d", chunk) : S("turn * 4 + tid / 64"));
    slots_number(&s, "turns", chunk / 4);
    slots_number(&s, "unroll", chunk / 4 < 8 ? chunk / 4 : 8);
    slots_number(&s, "chunk", chunk);
    slots_number(&s, "last", chunk - 1);
    slots_number(&s, "width", chunk + 4 / x->g.element);
    slots_number(&s, "vector", 16 / x->g.element);
    slots_put(&s, "plane", scope_int(&w->k, conv_plane(x->v)));
    slots_put(&s, "pitch", scope_int_plan(&w->k, "pitch", pitch));
    slots_put(&s, "channels", scope_int(&w->k, x->v->channels.total));
    slots_put(&s, "exists", input_exists(x, o));
    bool ok = put_common(x, o, &s);
    str slabs = slabs_plan(x);
    x->input = put_copy(
        x, o, TEXT(sh, "$, $, $", slabs, plane, pitch),
        TEXT(sh, "$*ceil_div($, 64)*ceil_div($, $)", slabs, plane, pitch, sheet_number(sh, chunk)),
        &s);
    return ok && sheet_put(sh, "convolution/pack_input.cu", &s, &sh->kernels);
}

/* ---- the filter ---- */

bool conv_pack_filter(struct conv_writer *x) {
    struct con_writer *w = &x->w;
    struct sheet *sh = w->sh;
    const struct con_operand *o = x->v->filter;
    struct slots s = {.mem = sh->mem};
    str flat, tensor = w->c->in->task->tensors[o->read->ref].name;
    if (!con_begin(w, TEXT(sh, "pack_$", tensor), 1u << CON_BATCH | 1u << CON_M))
        return false;
    str taps = sheet_number(sh, x->v->taps.count), pitch = conv_pitch(x),
        rows = sheet_plan(sh, w->c->group[CON_M].total),
        batch = sheet_plan(sh, w->c->group[CON_BATCH].total);
    str matrices = str_is(batch, "1") ? taps : TEXT(sh, "$*$", batch, taps);
    slots_put(&s, "taps", taps);
    slots_put(&s, "rows", w->total[CON_M]);
    slots_put(&s, "pitch", scope_int_plan(&w->k, "pitch", pitch));
    slots_put(&s, "channels", scope_int(&w->k, x->v->channels.total));
    slots_put(&s, "matrices",
              str_is(batch, "1") ? taps : TEXT(sh, "$ * $", w->total[CON_BATCH], taps));
    slots_put(
        &s, "decode_batch",
        con_decode(w, CON_BATCH, TEXT(sh, "at / padded / $ / $", w->total[CON_M], taps), &flat));
    str sides = con_decode(w, CON_M, S("row"), &flat);
    str all = con_decode_run(w, &x->v->taps, 0, x->v->taps.n, "int", S("(int)tap"));
    str channels = con_decode_run(w, &x->v->channels, 0, x->v->channels.n, "int", S("channel"));
    slots_put(&s, "decode", sheet_join(sh, sheet_join(sh, sides, "\n", all), "\n", channels));
    bool ok = put_common(x, o, &s);
    x->filter = put_copy(x, o, TEXT(sh, "$, $, $", matrices, rows, pitch),
                         TEXT(sh, "ceil_div($*$*$, 256)", matrices, rows, pitch), &s);
    return ok && sheet_put(sh, "convolution/pack_filter.cu", &s, &sh->kernels);
}
