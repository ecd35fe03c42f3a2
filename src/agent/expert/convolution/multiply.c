/* The kernel that multiplies: what its template needs of axes, taps and tiles. */
#include "agent/expert/convolution/convolution.h"

/* ---- where taps are ---- */

static str product(struct conv_writer *x, str a, str b) {
    return str_is(a, "1") ? b : str_is(b, "1") ? a : TEXT(x->w.sh, "$ * $", a, b);
}

static str phase_name(struct conv_writer *x, const struct conv_axis *a) {
    return a == conv_last(x->v) ? S("phase")
                                : TEXT(x->w.sh, "phase_$", scope_variable(&x->w.k, a->out.var));
}

/* phase + step * tap + ahead */
static str ahead_text(struct conv_writer *x, const struct conv_axis *a, str tap) {
    struct sheet *sh = x->w.sh;
    int64_t by = a->step < 0 ? -a->step : a->step, ahead = a->ahead;
    str sum = a->spread > 1 ? phase_name(x, a) : S("");
    if (a->taps > 1 && a->step < 0 && ahead >= by * (a->taps - 1)) { /* counted from the last on */
        tap = TEXT(sh, "($ - $)", sheet_number(sh, a->taps - 1), tap);
        ahead -= by * (a->taps - 1);
        sum = sheet_join(sh, sum, " + ", product(x, tap, sheet_number(sh, by)));
    } else if (a->taps > 1) {
        tap = product(x, tap, sheet_number(sh, by));
        sum = a->step < 0 ? TEXT(sh, "$ - $", sum, tap) : sheet_join(sh, sum, " + ", tap);
    }
    if (ahead && sum.n)
        return TEXT(sh, ahead < 0 ? "$ - $" : "$ + $", sum,
                    sheet_number(sh, ahead < 0 ? -ahead : ahead));
    return sum.n ? sum : sheet_number(sh, ahead);
}

static void put_line(struct conv_writer *x, struct slots *s) {
    struct sheet *sh = x->w.sh;
    size_t n = x->g.apart ? x->v->naxes : x->v->naxes - 1;
    int64_t inner = x->g.lines;
    slots_list(s, "line_axes");
    for (size_t i = 0; i < n; i++) {
        const struct conv_axis *a = &x->v->axes[i];
        struct slots *row = slots_row(s, "line_axes");
        str name = scope_variable(&x->w.k, a->out.var);
        inner /= a->taps;
        str tap = inner == 1 ? S("line") : TEXT(sh, "line / $", sheet_number(sh, inner));
        if (i > 0)
            tap = TEXT(sh, "$ % $", tap, sheet_number(sh, a->taps));
        slots_put(row, "name", name);
        slots_put(row, "ahead", ahead_text(x, a, tap));
        slots_put(row, "axis_spread", a->spread > 1 ? sheet_number(sh, a->spread) : S(""));
        slots_put(row, "axis_stride", sheet_number(sh, a->stride));
        int64_t by = a->spread * a->stride;
        slots_put(row, "shift",
                  by == 1 ? TEXT(sh, "$_ahead", name)
                          : TEXT(sh, "$_ahead / $", name, sheet_number(sh, by)));
        slots_put(row, "inner", TEXT(sh, "(int)$", scope_int(&x->w.k, conv_inner(x->v, i + 1))));
    }
}

/* Bits of the phases of the innermost axis that have taps, and of its parts. */
static void used_bits(const struct conv_axis *a, int64_t *phases, int64_t *parts) {
    *phases = *parts = 0;
    for (int64_t phase = 0; phase < a->spread; phase++)
        for (int64_t tap = 0; tap < a->taps; tap++) {
            int64_t part;
            if (conv_tap_at(a, tap, phase, &part) < 0)
                continue;
            *phases |= INT64_C(1) << phase;
            *parts |= INT64_C(1) << part;
        }
}

static void put_taps(struct conv_writer *x, struct slots *s) {
    struct sheet *sh = x->w.sh;
    const struct conv_axis *a = conv_last(x->v);
    bool spread = a->spread > 1, parted = a->stride > 1 && !x->g.apart, planes = false;
    int64_t phases, parts;
    used_bits(a, &phases, &parts);
    slots_put(s, "spread", spread ? sheet_number(sh, a->spread) : S(""));
    slots_put(s, "stride", parted ? sheet_number(sh, a->stride) : S(""));
    slots_flag(s, "skips", spread || x->v->phases > 1);
    slots_flag(s, "tests", (spread || parted) && !x->g.apart);
    slots_put(s, "phase_parameter", spread ? S(", int phase") : S(""));
    slots_put(s, "phase_argument", spread ? S(", phase") : S(""));
    slots_put(s, "part_parameter", parted ? S(", int part") : S(""));
    slots_put(s, "part_argument", parted ? S(", part") : S(""));
    slots_put(s, "parts_used", sheet_number(sh, parts));
    slots_put(s, "no_taps",
              spread ? TEXT(sh, " || !($ >> phase & 1)", sheet_number(sh, phases)) : S(""));
    slots_put(s, "tap_ahead", x->g.apart ? S("0") : ahead_text(x, a, S("tap")));
    slots_put(s, "times_phases", spread ? S(" * PHASES") : S(""));
    slots_put(s, "results_at", spread ? S(" + STAGES * SEGMENT + FILTERS * FILTER") : S(""));
    for (size_t i = 0; i < x->v->naxes; i++)
        planes |= x->v->axes[i].stride > 1 && (x->g.apart || i + 1 < x->v->naxes);
    slots_flag(s, "planes", planes);
    str plane = planes && parted ? S("plane_of(line) * PARTS + part")
                : planes         ? S("plane_of(line)")
                                 : S("part");
    slots_put(s, "slab_at",
              x->v->planes > 1
                  ? TEXT(sh, "(int)slab * $ + $", sheet_number(sh, x->v->planes), plane)
                  : S("(int)slab"));
}

/* ---- results ---- */

/* Positions along the axis at which windows of the block's phase begin; innermost: its results. */
static str count_text(struct conv_writer *x, const struct conv_axis *a) {
    return a->spread > 1 && a != conv_last(x->v)
               ? TEXT(x->w.sh, "count_$", scope_variable(&x->w.k, a->out.var))
               : scope_int(&x->w.k, a->out.extent);
}

static str counts_from(struct conv_writer *x, size_t from) {
    str all = S("1");
    for (size_t i = from; i < x->v->naxes; i++)
        all = product(x, all, count_text(x, &x->v->axes[i]));
    return all;
}

static void put_phases(struct conv_writer *x, struct slots *s) {
    struct sheet *sh = x->w.sh;
    int64_t inner = x->v->phases;
    slots_put(s, "phased", inner > 1 ? sheet_number(sh, inner) : S(""));
    slots_list(s, "phases");
    for (size_t i = 0; i + 1 < x->v->naxes; i++) {
        const struct conv_axis *a = &x->v->axes[i];
        if (a->spread == 1)
            continue;
        struct slots *row = slots_row(s, "phases");
        inner /= a->spread;
        slots_put(row, "name", scope_variable(&x->w.k, a->out.var));
        slots_put(
            row, "phase",
            sheet_printf(sh, "outer_phase / %lld %% %lld", (long long)inner, (long long)a->spread));
        slots_put(row, "extent", scope_int(&x->w.k, a->out.extent));
        slots_put(row, "spread", sheet_number(sh, a->spread));
        slots_put(row, "last_phase", sheet_number(sh, a->spread - 1));
    }
}

/* A variable of the result from the number of a result of the block's phases. */
static str coordinate(struct conv_writer *x, size_t axis, str result) {
    const struct conv_axis *a = &x->v->axes[axis];
    struct sheet *sh = x->w.sh;
    str after = counts_from(x, axis + 1), value = result;
    if (!str_is(after, "1"))
        value = TEXT(sh, "$ / ($)", value, after);
    if (axis > 0)
        value = TEXT(sh, "$ % $", value, count_text(x, a));
    if (a->spread > 1 && a != conv_last(x->v))
        value = TEXT(sh, "($) * $ + $", value, sheet_number(sh, a->spread), phase_name(x, a));
    return value;
}

static void put_axes(struct conv_writer *x, struct slots *s) {
    struct sheet *sh = x->w.sh;
    struct scope *k = &x->w.k;
    const struct convolution *v = x->v;
    str column = S("");
    slots_list(s, "outer");
    for (size_t i = 0; i < v->naxes; i++) {
        const struct conv_axis *a = &v->axes[i];
        str name = scope_variable(k, a->out.var), spread = sheet_number(sh, a->spread);
        k->var[a->out.var] = name;
        struct slots *row = slots_row(s, "axes");
        slots_put(row, "name", name);
        slots_put(row, "value", coordinate(x, i, S("result")));
        slots_put(row, "from", coordinate(x, i, S("from")));
        if (i + 1 < v->naxes) {
            str at = a->spread > 1 ? TEXT(sh, "$ / $", name, spread) : name;
            column = column.n ? TEXT(sh, "($) * $ + $", column, scope_int(k, a->padded), at) : at;
            row = slots_row(s, "outer");
            slots_put(row, "name", name);
            slots_put(row, "inner", scope_int(k, conv_inner(v, i + 1)));
            slots_put(row, "extent", count_text(x, a));
            slots_put(row, "after", counts_from(x, i + 1));
            continue;
        }
        slots_put(s, "innermost", name);
        slots_put(s, "width", scope_int(k, a->out.extent));
        str row_at = product(x, TEXT(sh, "($)", column), scope_int(k, a->padded));
        column = column.n ? TEXT(sh, "$ + $", product(x, row_at, spread), name) : name;
    }
    slots_put(s, "column", column);
}

/* What becomes of the variables where one has run through its results. */
static void put_wraps(struct conv_writer *x, struct slots *s) {
    struct sheet *sh = x->w.sh;
    struct scope *k = &x->w.k;
    const struct convolution *v = x->v;
    slots_list(s, "wraps");
    for (size_t i = v->naxes; i-- > 1;) {
        const struct conv_axis *a = &v->axes[i];
        bool last = a == conv_last(v);
        str phases = sheet_number(sh, conv_last(v)->spread), spread = sheet_number(sh, a->spread),
            count = count_text(x, a), padded = scope_int(k, a->padded);
        str skipped = TEXT(sh, "$ - $", last ? product(x, padded, phases) : padded, count);
        if (!last)
            skipped =
                product(x, product(x, TEXT(sh, "($)", skipped), scope_int(k, conv_inner(v, i + 1))),
                        phases);
        struct slots *row = slots_row(s, "wraps");
        slots_put(row, "name", k->var[a->out.var]);
        slots_put(row, "extent", scope_int(k, a->out.extent));
        slots_put(row, "whole", last ? count : product(x, count, spread));
        slots_put(row, "next", k->var[v->axes[i - 1].out.var]);
        slots_put(row, "next_spread", sheet_number(sh, v->axes[i - 1].spread));
        slots_put(row, "skipped", skipped);
    }
}

/* Where the tile's first result of a channel lies. */
static str place_text(struct conv_writer *x) {
    struct scope *k = &x->w.k;
    str kept[CONV_AXES] = {{0}};
    for (size_t i = 0; i < x->v->naxes; i++) {
        kept[i] = k->var[x->v->axes[i].out.var];
        k->var[x->v->axes[i].out.var] = TEXT(x->w.sh, "$_from", kept[i]);
    }
    k->statement = x->v->c->folds[0].statement;
    str place = scope_place_text(k);
    for (size_t i = 0; i < x->v->naxes; i++)
        k->var[x->v->axes[i].out.var] = kept[i];
    return TEXT(x->w.sh, "($)", place);
}

/* ---- the kernel ---- */

str conv_definitions(struct conv_writer *x) {
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
    put_line(x, s);
    put_taps(x, s);
    put_phases(x, s);
    slots_put(s, "decode_row", con_decode(w, CON_M, S("first_channel + channel"), &flat));
    put_axes(x, s);
    put_wraps(x, s);
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
    if (!con_put_wgmma(w, con_formats[w->g.format].type, &loop) ||
        !sheet_function(sh, "contraction/box.cu", &loop) ||
        !con_begin(w, TEXT(sh, "$_convolution", last), 1u << CON_BATCH | 1u << CON_M))
        return false;
    put_numbers(x, &s);
    put_text(x, &s);
    slots_put(&s, "definitions", conv_definitions(x));
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
    if (x->v->phases > 1)
        slabs = TEXT(sh, "$*$", slabs, sheet_number(sh, x->v->phases));
    sheet_step(sh,
               "launch %.*s<<<ceil_div(%.*s, %d)*ceil_div(%.*s, %d)*%.*s, %d, %zu>>>(%.*s, %.*s)",
               STR_ARG(w->k.name), STR_ARG(rows), x->g.tile_m, STR_ARG(used), x->g.tile_n,
               STR_ARG(slabs), x->g.threads, x->g.shared, STR_ARG(maps), STR_ARG(args));
    return sheet_put(sh, "convolution/kernel.cu", &s, &sh->kernels);
}
