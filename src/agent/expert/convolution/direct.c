/* Few channels of results: fp32 multiply-adds on the input as it lies. Tiles of tensor cores have
 * at least 64 channels, nearly all of them empty here, and a copy of the input would take longer
 * than the sums.
 *
 * A cell is what one place of the input's grid makes along every axis: a result, or the results of
 * all phases of a transposed convolution. A thread has `rows` cells that follow each other along
 * the axis before the innermost; lanes run along the innermost. */
#include "agent/expert/convolution/convolution.h"

enum {
    OUTPUTS_MOST = 8,
    RESULTS_MOST = 64,  /* accumulators of a thread */
    PLACES_MOST = 48,   /* of the input, for one channel */
    FMAS_MOST = 1536,   /* written out, for one channel */
    CHAIN_MOST = 4096,  /* terms of a sum in one accumulator */
    WEIGHTS_MOST = 8192 /* in shared memory */
};

static const struct conv_axis *down_axis(const struct convolution *v) {
    return v->naxes > 1 ? &v->axes[0] : NULL;
}

/* Places of the input along an axis for so many cells that follow each other. */
static int64_t places(const struct conv_axis *a, int64_t cells) {
    return a ? a->stride * (cells - 1 + a->reach) + a->stride : 1;
}

/* Tap and phase meet at a place of the input, counted from the first cell's on; -1: never. */
static int64_t place_of(const struct conv_axis *a, int64_t tap, int64_t phase) {
    int64_t part, at = a ? conv_tap_at(a, tap, phase, &part) : 0;
    return !a ? 0 : at < 0 ? -1 : a->stride * at + part;
}

static int64_t phases_of(const struct conv_axis *a) {
    return a ? a->spread : 1;
}

static int64_t pitch_of(int64_t outputs) {
    return outputs <= 2 ? outputs : (outputs + 3) / 4 * 4;
}

bool conv_direct(const struct convolution *v, int tile_n, int tile_k, struct conv_direct *out) {
    const struct contraction *c = v->c;
    const struct conv_axis *down = down_axis(v), *across = conv_last(v);
    int64_t outputs = c->group[CON_M].count, phases = phases_of(down) * across->spread,
            taps = v->taps.count, rows = down ? tile_n / 32 : 1;
    if (v->naxes > 2 || c->folds[0].rest || outputs > OUTPUTS_MOST ||
        c->group[CON_K].count > CHAIN_MOST)
        return false;
    while (rows > 1 && (outputs * phases * rows > RESULTS_MOST ||
                        places(down, rows) * places(across, 1) > PLACES_MOST ||
                        outputs * taps * rows > FMAS_MOST))
        rows /= 2;
    while (tile_k > 16 && tile_k * taps * pitch_of(outputs) > WEIGHTS_MOST)
        tile_k /= 2;
    *out = (struct conv_direct){(int)rows, tile_k};
    return outputs * phases * rows <= RESULTS_MOST &&
           places(down, rows) * places(across, 1) <= PLACES_MOST &&
           outputs * taps * rows <= FMAS_MOST && tile_k * taps * pitch_of(outputs) <= WEIGHTS_MOST;
}

/* ---- text ---- */

static str plus(struct sheet *sh, str text, int64_t v) {
    return v == 0 ? text
                  : sheet_printf(sh, "%.*s %c %lld", STR_ARG(text), v < 0 ? '-' : '+',
                                 (long long)(v < 0 ? -v : v));
}

static str times(struct sheet *sh, str text, int64_t v) {
    return v == 1 ? text : TEXT(sh, "$ * $", text, sheet_number(sh, v));
}

static void put_taps(struct conv_writer *x, struct slots *s) {
    const struct convolution *v = x->v;
    const struct conv_axis *down = down_axis(v), *across = conv_last(v);
    struct sheet *sh = x->w.sh;
    for (int64_t tap = 0; tap < v->taps.count; tap++)
        for (int64_t phase = 0; phase < phases_of(down) * across->spread; phase++) {
            int64_t row = place_of(down, tap / across->taps, phase / across->spread),
                    col = place_of(across, tap % across->taps, phase % across->spread);
            if (row < 0 || col < 0)
                continue;
            struct slots *line = slots_row(s, "taps");
            slots_put(line, "tap", sheet_number(sh, tap));
            slots_put(line, "phase", sheet_number(sh, phase));
            slots_put(line, "row_at", sheet_number(sh, row));
            slots_put(line, "col_at", sheet_number(sh, col));
        }
}

/* The place is one of the input's. */
static str exists_text(struct conv_writer *x, const struct con_operand *o) {
    const struct convolution *v = x->v;
    const struct tensor *t = &v->c->in->task->tensors[o->read->ref];
    str all = S(""), type = x->w.k.wide ? S("unsigned long long") : S("unsigned");
    for (size_t d = 0; d < o->read->nargs; d++) {
        bool along = false;
        for (size_t i = 0; i < v->naxes; i++)
            along |= v->axes[i].dim == d;
        if (!along && (o->factor->kind != EXPR_PAD || !con_can_leave(v->c, o, d)))
            continue;
        str at = scope_text(&x->w.k, o->read->args[d]), extent = scope_int(&x->w.k, t->extent[d]);
        all = sheet_join(x->w.sh, all, " && ",
                         TEXT(x->w.sh, "($)($) < ($)$", type, at, type, extent));
    }
    return all;
}

/* Variables of the result along axes are declared by these names. */
static void name_axes(struct conv_writer *x) {
    for (size_t i = 0; i < x->v->naxes; i++) {
        size_t var = x->v->axes[i].out.var;
        x->w.k.var[var] = scope_variable(&x->w.k, var);
    }
}

static void put_input(struct conv_writer *x, struct slots *s) {
    struct con_writer *w = &x->w;
    const struct convolution *v = x->v;
    struct sheet *sh = w->sh;
    const struct conv_axis *down = down_axis(v), *across = conv_last(v);
    const struct con_operand o = conv_by_place(v);
    slots_put(s, "decode_channel",
              con_decode_run(w, &v->channels, 0, v->channels.n, "int", S("channel")));
    name_axes(x);
    if (down) {
        slots_put(s, "down", w->k.var[down->out.var]);
        slots_put(s, "first_row", plus(sh, times(sh, S("cell_down"), down->stride), down->first));
    }
    slots_put(s, "across", w->k.var[across->out.var]);
    slots_put(s, "first_col", plus(sh, times(sh, S("cell_across"), across->stride), across->first));
    slots_put(s, "exists", exists_text(x, &o));
    slots_put(s, "input", con_element(w, &o, DTYPE_F32));
}

static void put_filter(struct conv_writer *x, struct slots *s) {
    struct con_writer *w = &x->w;
    const struct convolution *v = x->v;
    const struct con_group *m = &w->c->group[CON_M];
    str lines = con_decode_run(w, m, 0, m->n, "int", S("output"));
    lines =
        sheet_join(w->sh, lines, "\n", con_decode_run(w, &v->taps, 0, v->taps.n, "int", S("tap")));
    lines = sheet_join(w->sh, lines, "\n",
                       con_decode_run(w, &v->channels, 0, v->channels.n, "int", S("channel")));
    slots_put(s, "decode_filter", lines);
    slots_put(s, "filter", con_element(w, v->filter, DTYPE_F32));
}

static bool put_results(struct conv_writer *x, struct slots *s) {
    struct con_writer *w = &x->w;
    const struct convolution *v = x->v;
    struct sheet *sh = w->sh;
    const struct conv_axis *down = down_axis(v), *across = conv_last(v);
    const struct con_group *m = &w->c->group[CON_M];
    const struct statement *fold = w->c->folds[0].statement;
    struct maps maps;
    name_axes(x);
    str q = w->k.var[across->out.var], within = S(""), col = S("phase");
    if (down) {
        str p = w->k.var[down->out.var], row = S("(cell_down + row)"), phase = S("phase");
        if (across->spread > 1)
            phase = TEXT(sh, "phase / $", sheet_number(sh, across->spread));
        str value = times(sh, row, down->spread);
        slots_put(s, "down_value", down->spread > 1 ? TEXT(sh, "$ + $", value, phase) : value);
        within = TEXT(sh, "$ < $ && ", p, scope_int(&w->k, down->out.extent));
        if (across->spread > 1 && down->spread > 1)
            col = TEXT(sh, "phase % $", sheet_number(sh, across->spread));
    }
    str value = times(sh, S("cell_across"), across->spread);
    slots_put(s, "across_value", across->spread > 1 ? TEXT(sh, "$ + $", value, col) : value);
    slots_put(s, "within", TEXT(sh, "$$ < $", within, q, scope_int(&w->k, across->out.extent)));
    w->k.statement = fold;
    slots_put(s, "decode_output", con_decode_run(w, m, 0, m->n, "int", S("output")));
    slots_list(s, "stores");
    bool ok = maps_write(&w->k, fold, S("value"), s, &maps);
    for (size_t i = 0; ok && i < maps.n; i++) {
        str to = scope_pointer(&w->k, maps.out[i].tensor, true), at = scope_place_text(&w->k);
        slots_put(slots_row(s, "stores"), "store",
                  TEXT(sh, "$[$] = $", to, at, maps.out[i].packed));
    }
    return ok;
}

/* ---- the kernel ---- */

static struct expr *cells_of(const struct convolution *v, int64_t rows) {
    struct arena *a = v->c->mem;
    const struct conv_axis *down = down_axis(v);
    if (!down)
        return conv_last(v)->count;
    struct expr *n = down->count;
    if (rows > 1)
        n = expr_pair(a, EXPR_FLOORDIV, expr_pair(a, EXPR_ADD, n, expr_number(a, rows - 1)),
                      expr_number(a, rows));
    return expr_times(a, n, conv_last(v)->count);
}

static void put_numbers(struct conv_writer *x, const struct conv_direct *g, struct slots *s) {
    const struct convolution *v = x->v;
    const struct conv_axis *down = down_axis(v), *across = conv_last(v);
    int64_t outputs = v->c->group[CON_M].count, phases = phases_of(down) * across->spread;
    slots_number(s, "block", x->g.threads);
    slots_number(s, "rows", g->rows);
    slots_number(s, "phases", phases);
    slots_number(s, "results", phases * g->rows);
    slots_number(s, "outputs", outputs);
    slots_number(s, "pitch", pitch_of(outputs));
    slots_flag(s, "vectors", outputs > 2);
    slots_number(s, "taps", v->taps.count);
    slots_number(s, "rows_in", places(down, g->rows));
    slots_number(s, "cols_in", places(across, 1));
    slots_number(s, "chunk", g->chunk);
    slots_put(s, "place_of_row", times(x->w.sh, S("row"), down ? down->stride : 1));
    slots_flag(s, "down", down != NULL);
}

/* Shapes for which the text holds. */
static void require_shape(struct conv_writer *x, const struct expr *cells) {
    struct sheet *sh = x->w.sh;
    const struct contraction *c = x->v->c;
    str outputs = sheet_plan(sh, c->group[CON_M].total), places = sheet_plan(sh, cells),
        sum = sheet_plan(sh, c->group[CON_K].total);
    if (c->group[CON_M].total->kind != EXPR_NUMBER)
        sheet_require(sh, "%.*s == %lld", STR_ARG(outputs), (long long)c->group[CON_M].count);
    if (c->group[CON_K].total->kind != EXPR_NUMBER)
        sheet_require_for(sh, "A longer sum in one accumulator would be less accurate.",
                          "%.*s <= %d", STR_ARG(sum), CHAIN_MOST);
    if (cells->kind != EXPR_NUMBER)
        sheet_require(sh, "%.*s <= 1073741824", STR_ARG(places));
}

bool conv_write_direct(struct conv_writer *x, const struct conv_direct *g) {
    struct con_writer *w = &x->w;
    const struct convolution *v = x->v;
    struct sheet *sh = w->sh;
    const struct task *t = w->step->inst->task;
    struct slots s = {.mem = sh->mem};
    struct expr *cells = cells_of(v, g->rows);
    str last = t->tensors[t->statements[t->nstatements - 1].tensor].name, flat;
    bool grouped = w->c->group[CON_BATCH].n > 0;
    if (!con_begin(w, TEXT(sh, "$_convolution", last), 1u << CON_BATCH))
        return false;
    require_shape(x, cells);
    slots_list(&s, "taps");
    put_numbers(x, g, &s);
    str batch = con_decode(w, CON_BATCH, TEXT(sh, "slab % $", w->total[CON_BATCH]), &flat);
    str images = con_decode_run(w, &v->images, 0, v->images.n, w->index,
                                grouped ? TEXT(sh, "(slab / $)", w->total[CON_BATCH]) : S("slab"));
    slots_put(&s, "decode_slab", sheet_join(sh, batch, "\n", images));
    slots_put(&s, "channels", scope_int(&w->k, v->channels.total));
    slots_put(&s, "cells_across", scope_int(&w->k, conv_last(v)->count));
    slots_put(&s, "cells", scope_int(&w->k, cells));
    put_input(x, &s);
    put_filter(x, &s);
    put_taps(x, &s);
    bool ok = put_results(x, &s);
    slots_put(&s, "definitions", conv_definitions(x));
    slots_put(&s, "kernel", w->k.name);
    slots_put(&s, "index", str_view(w->index));
    slots_put(&s, "parameters", scope_params(&w->k));
    str slabs = sheet_plan(sh, v->images.total), args = scope_args(&w->k),
        groups = sheet_plan(sh, w->c->group[CON_BATCH].total), blocks = sheet_plan(sh, cells);
    if (!str_is(groups, "1"))
        slabs = TEXT(sh, "$*$", slabs, groups);
    sheet_step(sh, "launch %.*s<<<ceil_div(%.*s, %d)*%.*s, %d>>>(%.*s)", STR_ARG(w->k.name),
               STR_ARG(blocks), x->g.threads, STR_ARG(slabs), x->g.threads, STR_ARG(args));
    return ok && sheet_put(sh, "convolution/direct.cu", &s, &sh->kernels);
}
