/* The kernel that multiplies: what its template needs of axes, taps and tiles. */
#include "agent/expert/convolution/convolution.h"

/* ---- where taps are ---- */

/* Positions from where a window begins to its tap, along one axis. */
static str tap_text(struct conv_writer *x, const struct conv_axis *a, str tap) {
    int64_t by = a->step < 0 ? -a->step : a->step;
    if (a->taps == 1)
        return S("");
    if (a->step < 0)
        tap = TEXT(x->w.sh, "($ - $)", sheet_number(x->w.sh, a->taps - 1), tap);
    return by == 1 ? tap : TEXT(x->w.sh, "$ * $", tap, sheet_number(x->w.sh, by));
}

/* Positions from where a window begins to a line of the filter. */
static str line_text(struct conv_writer *x) {
    struct sheet *sh = x->w.sh;
    size_t n = x->g.apart ? x->v->naxes : x->v->naxes - 1;
    int64_t inner = 1;
    str sum = S("");
    for (size_t i = n; i-- > 0;) {
        const struct conv_axis *a = &x->v->axes[i];
        str tap = inner == 1 ? S("line") : TEXT(sh, "line / $", sheet_number(sh, inner));
        if (i > 0)
            tap = TEXT(sh, "$ % $", tap, sheet_number(sh, a->taps));
        str at = tap_text(x, a, tap);
        inner *= a->taps;
        if (!at.n)
            continue;
        struct expr *by = conv_inner(x->v, i + 1);
        if (!expr_is_number(by, 1))
            at = TEXT(sh, "$ * (int)$", at, scope_int(&x->w.k, by));
        sum = sheet_join(sh, at, " + ", sum);
    }
    return sum.n ? sum : S("0");
}

/* ---- results ---- */

static struct expr *results_from(const struct convolution *v, size_t from) {
    struct expr *e = expr_number(v->c->mem, 1);
    for (size_t i = from; i < v->naxes; i++)
        e = expr_times(v->c->mem, e, v->axes[i].out.extent);
    return e;
}

static void put_axes(struct conv_writer *x, struct slots *s) {
    struct sheet *sh = x->w.sh;
    struct scope *k = &x->w.k;
    const struct convolution *v = x->v;
    str column = S("");
    slots_list(s, "outer");
    slots_list(s, "wraps");
    for (size_t i = 0; i < v->naxes; i++) {
        const struct conv_axis *a = &v->axes[i];
        str name = scope_variable(k, a->out.var), value = S("result"),
            extent = scope_int(k, a->out.extent);
        struct expr *after = results_from(v, i + 1);
        k->var[a->out.var] = name;
        if (!expr_is_number(after, 1))
            value = TEXT(sh, "$ / $", value, scope_int(k, after));
        if (i > 0)
            value = TEXT(sh, "$ % $", value, extent);
        struct slots *row = slots_row(s, "axes");
        slots_put(row, "name", name);
        slots_put(row, "value", value);
        column = column.n ? TEXT(sh, "($) * $ + $", column, scope_int(k, a->padded), name) : name;
        if (i + 1 < v->naxes) {
            row = slots_row(s, "outer");
            slots_put(row, "name", name);
            slots_put(row, "inner", scope_int(k, conv_inner(v, i + 1)));
            slots_put(row, "extent", extent);
            slots_put(row, "after", scope_int(k, after));
        } else {
            slots_put(s, "innermost", name);
            slots_put(s, "width", extent);
        }
    }
    slots_put(s, "column", column);
    for (size_t i = v->naxes; i-- > 1;) {
        const struct conv_axis *a = &v->axes[i];
        str skipped = TEXT(sh, "$ - $", scope_int(k, a->padded), scope_int(k, a->out.extent));
        struct expr *inner = conv_inner(v, i + 1);
        if (!expr_is_number(inner, 1))
            skipped = TEXT(sh, "($) * $", skipped, scope_int(k, inner));
        struct slots *row = slots_row(s, "wraps");
        slots_put(row, "name", k->var[a->out.var]);
        slots_put(row, "extent", scope_int(k, a->out.extent));
        slots_put(row, "next", k->var[v->axes[i - 1].out.var]);
        slots_put(row, "skipped", skipped);
    }
}

/* Where the results of a channel begin, if they lie in one run. */
static str place_text(struct conv_writer *x) {
    struct scope *k = &x->w.k;
    str kept[CONV_AXES];
    for (size_t i = 0; i < x->v->naxes; i++) {
        kept[i] = k->var[x->v->axes[i].out.var];
        k->var[x->v->axes[i].out.var] = S("0");
    }
    k->statement = x->v->c->folds[0].statement;
    str place = scope_place_text(k);
    for (size_t i = 0; i < x->v->naxes; i++)
        k->var[x->v->axes[i].out.var] = kept[i];
    return place;
}

/* ---- the kernel ---- */

static str definition_text(struct conv_writer *x) {
    const struct task *t = x->w.step->inst->task;
    str all = S("");
    for (size_t i = 0; i < t->nstatements; i++) {
        str line = str_cut(sheet_definition(x->w.sh, x->w.step, &t->statements[i]), 0, 90);
        if (str_find(all, line) == all.n)
            all = sheet_join(x->w.sh, all, "\n// ", line);
    }
    return all;
}

static void put_numbers(struct conv_writer *x, struct slots *s) {
    const struct conv_config *g = &x->g;
    slots_number(s, "block", g->threads);
    slots_number(s, "blocks", g->blocks);
    slots_number(s, "tile_m", g->tile_m);
    slots_number(s, "tile_n", g->tile_n);
    slots_number(s, "warpgroups", g->warpgroups);
    slots_number(s, "lines", g->lines);
    slots_number(s, "taps", g->taps);
    slots_number(s, "stages", g->stages);
    slots_number(s, "filters", g->filters);
    slots_number(s, "segment", g->boxes * g->box * 128);
    slots_number(s, "boxes", g->boxes);
    slots_number(s, "box", g->box);
    slots_number(s, "steps", g->steps);
    slots_number(s, "chunk", g->chunk);
    slots_number(s, "last", g->chunk - 1);
    slots_put(s, "promote", g->promote ? sheet_number(x->w.sh, g->promote) : S(""));
}

static str put_maps(struct conv_writer *x) {
    struct sheet *sh = x->w.sh;
    str input = sheet_printf(sh, "tiled(%.*s, box=[%d, %d, 1], swizzle=128)", STR_ARG(x->input),
                             x->g.chunk, x->g.box),
        filter = sheet_printf(sh, "tiled(%.*s, box=[%d, %d, 1], swizzle=128)", STR_ARG(x->filter),
                              x->g.chunk, x->g.tile_m);
    str maps[2] = {sheet_shared_name(sh, input, "map_input"),
                   sheet_shared_name(sh, filter, "map_filter")};
    sheet_memory(sh, "tensormap %.*s = %.*s", STR_ARG(maps[0]), STR_ARG(input));
    sheet_memory(sh, "tensormap %.*s = %.*s", STR_ARG(maps[1]), STR_ARG(filter));
    return TEXT(sh, "$, $", maps[0], maps[1]);
}

static void put_text(struct conv_writer *x, struct slots *s) {
    struct con_writer *w = &x->w;
    struct sheet *sh = w->sh;
    str flat, taps = sheet_number(sh, x->v->taps.count);
    bool grouped = w->c->group[CON_BATCH].n > 0;
    str batch = con_decode(w, CON_BATCH, TEXT(sh, "slab % $", w->total[CON_BATCH]), &flat);
    str images = con_decode_run(w, &x->v->images, 0, x->v->images.n, w->index,
                                grouped ? TEXT(sh, "(slab / $)", w->total[CON_BATCH]) : S("slab"));
    slots_put(s, "decode_slab", sheet_join(sh, batch, "\n", images));
    slots_put(s, "first_matrix",
              grouped ? TEXT(sh, "(slab % $) * $", w->total[CON_BATCH], taps) : S("0"));
    slots_put(s, "plane", scope_int(&w->k, conv_plane(x->v)));
    slots_put(s, "used", scope_int(&w->k, conv_used(x->v)));
    slots_put(s, "rows", w->total[CON_M]);
    slots_put(s, "channels", scope_int(&w->k, x->v->channels.total));
    slots_put(s, "line_at", line_text(x));
    str tap = x->g.apart ? S("") : tap_text(x, &x->v->axes[x->v->naxes - 1], S("tap"));
    slots_put(s, "tap_at", tap.n ? tap : S("0"));
    slots_put(s, "decode_row", con_decode(w, CON_M, S("first_channel + channel"), &flat));
    put_axes(x, s);
    slots_put(s, "place", place_text(x));
    slots_put(s, "epilogue", con_epilogue(w));
}

bool conv_multiply(struct conv_writer *x) {
    struct con_writer *w = &x->w;
    struct sheet *sh = w->sh;
    const struct task *t = w->step->inst->task;
    struct slots s = {.mem = sh->mem}, loop = {.mem = sh->mem};
    str last = t->tensors[t->statements[t->nstatements - 1].tensor].name, maps = put_maps(x);
    w->g.tile_n = x->g.tile_n;
    w->g.format = x->g.format;
    slots_flag(&loop, "cute", false);
    if (!con_put_wgmma(w, &loop) || !sheet_function(sh, "contraction/box.cu", &loop) ||
        !con_begin(w, TEXT(sh, "$_convolution", last), 1u << CON_BATCH | 1u << CON_M))
        return false;
    put_numbers(x, &s);
    put_text(x, &s);
    slots_put(&s, "definitions", definition_text(x));
    slots_put(&s, "format", str_view(con_formats[x->g.format].how));
    slots_put(&s, "kernel", w->k.name);
    slots_put(&s, "index", str_view(w->index));
    slots_put(&s, "wgmma", slots_get(&loop, "wgmma"));
    slots_put(&s, "parameters",
              TEXT(sh,
                   "const __grid_constant__ CUtensorMap map_input, "
                   "const __grid_constant__ CUtensorMap map_filter, $",
                   scope_params(&w->k)));
    str used = sheet_plan(sh, conv_used(x->v)), args = scope_args(&w->k),
        rows = sheet_plan(sh, w->c->group[CON_M].total),
        images = sheet_plan(sh, x->v->images.total),
        batch = sheet_plan(sh, w->c->group[CON_BATCH].total);
    str slabs = str_is(batch, "1") ? images : TEXT(sh, "$*$", images, batch);
    sheet_step(sh,
               "launch %.*s<<<ceil_div(%.*s, %d)*ceil_div(%.*s, %d)*%.*s, %d, %zu>>>(%.*s, %.*s)",
               STR_ARG(w->k.name), STR_ARG(rows), x->g.tile_m, STR_ARG(used), x->g.tile_n,
               STR_ARG(slabs), x->g.threads, x->g.shared, STR_ARG(maps), STR_ARG(args));
    return sheet_put(sh, "convolution/kernel.cu", &s, &sh->kernels);
}
