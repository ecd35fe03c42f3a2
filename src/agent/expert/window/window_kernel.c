/* The kernel of a window: a block takes a tile of results, the lanes along the innermost axis. A
 * thread's results follow each other along another axis of the window, so that a row of input that
 * several of them need is read once; where the innermost axis is the only one, they lie a block
 * apart. All loops over the window are unrolled. */
#include "agent/expert/window/window.h"

#define TEXT_MAX (256u << 10)

/* ---- text with an indentation ---- */

struct code {
    struct buf b;
    int depth;
};

__attribute__((format(printf, 2, 3))) static void put(struct code *c, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    buf_printf(&c->b, "%*s", 4 * c->depth, "");
    buf_vprintf(&c->b, format, ap);
    buf_putc(&c->b, '\n');
    va_end(ap);
}

static void open_loop(struct code *c, str name, int64_t n) {
    put(c, "#pragma unroll");
    put(c, "for (int %.*s = 0; %.*s < %lld; %.*s++) {", STR_ARG(name), STR_ARG(name), (long long)n,
        STR_ARG(name));
    c->depth++;
}

static void close_loop(struct code *c) {
    c->depth--;
    put(c, "}");
}

/* Lines of a text that was made elsewhere. */
static void put_text(struct code *c, str text) {
    str line;
    while (str_line(&text, &line))
        put(c, "%.*s", STR_ARG(line));
}

static str finish(struct window *w, struct code *c) {
    str text = sheet_keep(w->sh, &c->b);
    buf_release(&c->b);
    return text;
}

/* ---- variables ---- */

static str name(const struct window *w, const char *slot) {
    return slots_get(&w->names, slot);
}

static const struct window_axis *axis(const struct window *w, int i) {
    return &w->shape.axes[i];
}

/* Results beyond the last are computed and dropped; what else they read is that of the last. */
static str clamped(struct window *w, size_t var, str text) {
    const struct tensor *y = &w->in->task->tensors[w->fold->tensor];
    if (!(w->shape.beside >> var & 1))
        return text;
    str extent = scope_int(&w->k, y->extent[var]);
    return sheet_printf(w->sh, "min(%.*s, %.*s - 1)", STR_ARG(text), STR_ARG(extent));
}

static str result_text(struct window *w) {
    str first = name(w, "first"), o = name(w, "o");
    return sheet_printf(w->sh, "(%.*s + %.*s)", STR_ARG(first), STR_ARG(o));
}

static void name_variables(struct window *w) {
    for (size_t v = 0; v < w->fold->nindex; v++)
        w->k.var[v] = scope_variable(&w->k, v);
    for (size_t i = 0; i < w->shape.naxes; i++)
        w->k.var[w->shape.axes[i].reduced] = scope_variable(&w->k, w->shape.axes[i].reduced);
    w->k.var[w->fold->nvars] = name(w, "u");
}

static str acc_text(struct window *w) {
    str acc = name(w, "acc"), o = name(w, "o");
    return w->items == 1 ? acc : sheet_printf(w->sh, "%.*s[%.*s]", STR_ARG(acc), STR_ARG(o));
}

static str count_text(struct window *w) {
    str count = name(w, "count"), o = name(w, "o");
    return w->items == 1 ? count : sheet_printf(w->sh, "%.*s[%.*s]", STR_ARG(count), STR_ARG(o));
}

static bool counts(const struct window *w) {
    return w->fold->body->reduce->op == REDUCTION_MEAN && w->fold->body->reduce->guard;
}

/* ---- taps ---- */

static const char *kind_type(enum value_kind k) {
    return k == VALUE_REAL ? "float" : k == VALUE_INT ? "long long" : "bool";
}

/* stride·first + u + offset */
static struct expr *row_index(struct window *w, const struct window_tap *tap) {
    struct sheet *sh = w->sh;
    const struct window_axis *x = axis(w, w->down);
    struct expr *at = window_variable(sh, x->out);
    int64_t offset = tap->offset[w->down];
    if (x->stride > 1)
        at = window_binary(sh, EXPR_MUL, window_number(sh, x->stride), at);
    at = window_binary(sh, EXPR_ADD, at, window_variable(sh, w->fold->nvars));
    if (offset)
        at = window_binary(sh, offset < 0 ? EXPR_SUB : EXPR_ADD, at,
                           window_number(sh, offset < 0 ? -offset : offset));
    return at;
}

/* Where an index may carry a read out of its tensor, the load goes to the first element instead, so
 * that it needs no branch and loads can be under way together. */
static void put_tap(struct window *w, const struct window_tap *tap, str to, struct code *c) {
    struct sheet *sh = w->sh;
    struct expr *index[TASK_MAX_RANK] = {NULL}, *moved[TASK_MAX_RANK] = {NULL};
    int loose = window_slides(w) ? w->down : w->down < 0 && w->items > 1 ? w->across : -1;
    if (window_slides(w) && tap->position[w->down] >= 0)
        index[tap->position[w->down]] = row_index(w, tap);
    struct expr *read = window_read_at(sh, tap->read, index);
    if (loose >= 0 && tap->position[loose] >= 0)
        moved[tap->position[loose]] = read->args[tap->position[loose]];
    str inside = window_inside(w, tap, read, moved);
    const char *type = kind_type(tap->node->value_kind);
    if (inside.n == 0) {
        str value = scope_text(&w->k, read);
        put(c, "const %s %.*s = %.*s;", type, STR_ARG(to), STR_ARG(value));
        return;
    }
    struct buf b;
    buf_init(&b, TEXT_MAX);
    scope_offset(&w->k, read, &b);
    str offset = sheet_keep(sh, &b), from = scope_pointer(&w->k, read->ref, false);
    buf_release(&b);
    str in = sheet_name(sh, sheet_printf(sh, "%.*s_inside", STR_ARG(from)));
    str element =
        sheet_printf(sh, "%.*s[%.*s ? %.*s : 0]", STR_ARG(from), STR_ARG(in), STR_ARG(offset));
    str value = scope_unpacked(&w->k, read->ref, element);
    bool pads = tap->node->kind == EXPR_PAD;
    str otherwise = pads ? scope_text(&w->k, tap->node->args[1]) : S("0");
    put(c, "const bool %.*s = %.*s;", STR_ARG(in), STR_ARG(inside));
    put(c, "const %s %.*s_read = %.*s;", type, STR_ARG(to), STR_ARG(value));
    put(c, "const %s %.*s = %.*s ? %.*s_read : %.*s;", type, STR_ARG(to), STR_ARG(in), STR_ARG(to),
        STR_ARG(otherwise));
}

static void put_taps(struct window *w, const struct window_tile *tile, struct code *c) {
    for (size_t i = 0; i < w->shape.ntaps; i++) {
        const struct window_tap *tap = &w->shape.taps[i];
        str x = w->in->task->tensors[tap->read->ref].name;
        str to = sheet_name(w->sh, sheet_printf(w->sh, "%.*s_tap", STR_ARG(x)));
        if (window_slides(w))
            w->k.var[axis(w, w->down)->out] = name(w, "first");
        if (w->halo) {
            str value = window_tile_tap(w, tile);
            put(c, "const %s %.*s = %.*s;", kind_type(tap->node->value_kind), STR_ARG(to),
                STR_ARG(value));
        } else
            put_tap(w, tap, to, c);
        scope_hold(&w->k, tap->node, to);
    }
}

/* ---- weights ---- */

static str weight_text(struct window *w, size_t n) {
    str text = w->weights[n].name;
    for (size_t i = 0; i < w->shape.naxes; i++) {
        str at = w->k.var[w->shape.axes[i].reduced];
        if (expr_uses(w->weights[n].read) >> w->shape.axes[i].reduced & 1)
            text = sheet_printf(w->sh, "%.*s[%.*s]", STR_ARG(text), STR_ARG(at));
    }
    return text;
}

static void hold_weights(struct window *w) {
    for (size_t i = 0; i < w->nweights; i++)
        scope_hold(&w->k, w->weights[i].read, weight_text(w, i));
}

/* All weights, loaded before anything else is waited for. */
static str weights_text(struct window *w) {
    struct code c = {.depth = 0};
    buf_init(&c.b, TEXT_MAX);
    for (size_t i = 0; i < w->nweights; i++) {
        const struct expr *read = w->weights[i].read;
        str sizes = S(""), value = scope_text(&w->k, read), to = weight_text(w, i);
        for (size_t k = 0; k < w->shape.naxes; k++)
            if (expr_uses(read) >> w->shape.axes[k].reduced & 1)
                sizes = sheet_printf(w->sh, "%.*s[%lld]", STR_ARG(sizes),
                                     (long long)w->shape.axes[k].size);
        put(&c, "%s %.*s%.*s;", kind_type(read->value_kind), STR_ARG(w->weights[i].name),
            STR_ARG(sizes));
        for (size_t k = 0; k < w->shape.naxes; k++)
            if (expr_uses(read) >> w->shape.axes[k].reduced & 1)
                open_loop(&c, w->k.var[w->shape.axes[k].reduced], w->shape.axes[k].size);
        put(&c, "%.*s = %.*s;", STR_ARG(to), STR_ARG(value));
        while (c.depth > 0)
            close_loop(&c);
    }
    return finish(w, &c);
}

/* ---- terms ---- */

/* into = combine(into, term), for the terms the guard selects. */
static void put_step(struct window *w, str into, struct code *c) {
    const struct reduce *r = w->fold->body->reduce;
    hold_weights(w);
    str term = scope_text(&w->k, w->fold->body->args[0]);
    bool bare = str_find(term, S(" ")) == term.n,
         extreme = r->op == REDUCTION_MAX || r->op == REDUCTION_MIN;
    bool product = w->fold->body->args[0]->kind == EXPR_MUL;
    if (!bare && !extreme && !(product && r->op != REDUCTION_PROD))
        term = sheet_printf(w->sh, "(%.*s)", STR_ARG(term));
    str step = fold_step(w->sh, w->fold, into, term);
    if (!r->guard) {
        put(c, "%.*s = %.*s;", STR_ARG(into), STR_ARG(step));
        return;
    }
    str guard = scope_text(&w->k, r->guard);
    put(c, "if (%.*s) {", STR_ARG(guard));
    put(c, "    %.*s = %.*s;", STR_ARG(into), STR_ARG(step));
    if (counts(w)) {
        str count = count_text(w);
        put(c, "    %.*s += 1.0f;", STR_ARG(count));
    }
    put(c, "}");
}

/* Which of the window's places a row of input is for a result, if any. */
static void open_results(struct window *w, struct code *c) {
    const struct window_axis *x = axis(w, w->down);
    str u = name(w, "u"), o = name(w, "o"), reach = name(w, "reach");
    open_loop(c, o, w->items);
    put(c, x->stride > 1 ? "const int %.*s = %.*s - %.*s * %lld;" : "const int %.*s = %.*s - %.*s;",
        STR_ARG(reach), STR_ARG(u), STR_ARG(o), (long long)x->stride);
    if (x->dilation > 1)
        put(c, "if (%.*s >= 0 && %.*s <= %lld && %.*s %% %lld == 0) {", STR_ARG(reach),
            STR_ARG(reach), (long long)((x->size - 1) * x->dilation), STR_ARG(reach),
            (long long)x->dilation);
    else
        put(c, "if (%.*s >= 0 && %.*s < %lld) {", STR_ARG(reach), STR_ARG(reach),
            (long long)x->size);
    c->depth++;
    w->k.var[x->out] = clamped(w, x->out, result_text(w));
    w->k.var[x->reduced] = x->dilation > 1 ? sheet_printf(w->sh, "(%.*s / %lld)", STR_ARG(reach),
                                                          (long long)x->dilation)
                                           : reach;
}

static void close_results(struct code *c) {
    close_loop(c);
    close_loop(c);
}

static void put_innermost(struct window *w, const struct window_tile *tile, struct code *c) {
    if (w->across >= 0)
        open_loop(c, w->k.var[axis(w, w->across)->reduced], axis(w, w->across)->size);
    put_taps(w, tile, c);
    if (w->separable)
        put_step(w, name(w, "line"), c);
    else if (window_slides(w)) {
        open_results(w, c);
        put_step(w, acc_text(w), c);
        close_results(c);
    } else
        put_step(w, acc_text(w), c);
    if (w->across >= 0)
        close_loop(c);
}

/* Results of a thread that lie along the lanes: the index of one of them. */
static void put_column(struct window *w, bool within, struct code *c) {
    str corner = name(w, "corner"), lane = name(w, "lane"), o = name(w, "o");
    str q = w->k.var[w->last];
    if (w->down >= 0 || w->items == 1)
        return;
    str at = sheet_printf(w->sh, "%.*s + %.*s * %lld + %.*s", STR_ARG(corner), STR_ARG(o),
                          (long long)w->block, STR_ARG(lane));
    at = within ? clamped(w, w->last, at) : at;
    put(c, "const %s %.*s = %.*s;", scope_index_type(&w->k), STR_ARG(q), STR_ARG(at));
}

static str loops_text(struct window *w, const struct window_tile *tile) {
    struct code c = {.depth = 0};
    size_t opened = 0;
    buf_init(&c.b, TEXT_MAX);
    bool lanewise = w->down < 0 && w->items > 1;
    if (lanewise) {
        open_loop(&c, name(w, "o"), w->items);
        put_column(w, true, &c);
        opened++;
    }
    for (int i = 0; i < (int)w->shape.naxes; i++) {
        if (i == w->down || i == w->across)
            continue;
        open_loop(&c, w->k.var[axis(w, i)->reduced], axis(w, i)->size);
        opened++;
    }
    if (w->down >= 0) {
        const struct window_axis *x = axis(w, w->down);
        open_loop(&c, window_slides(w) ? name(w, "u") : w->k.var[x->reduced],
                  window_slides(w) ? window_reach(x, w->items) : x->size);
        opened++;
    }
    str line = name(w, "line");
    if (w->separable)
        put(&c, "%s %.*s = %.*s;", w->type, STR_ARG(line), STR_ARG(w->identity));
    put_innermost(w, tile, &c);
    if (w->separable) {
        open_results(w, &c);
        str acc = acc_text(w), step = fold_step(w->sh, w->fold, acc, line);
        put(&c, "%.*s = %.*s;", STR_ARG(acc), STR_ARG(step));
        close_results(&c);
    }
    while (opened--)
        close_loop(&c);
    return finish(w, &c);
}

/* ---- results ---- */

static str begin_text(struct window *w) {
    struct code c = {.depth = 0};
    str acc = name(w, "acc"), count = name(w, "count"), o = name(w, "o");
    buf_init(&c.b, TEXT_MAX);
    if (w->items == 1) {
        put(&c, "%s %.*s = %.*s;", w->type, STR_ARG(acc), STR_ARG(w->identity));
        if (counts(w))
            put(&c, "float %.*s = 0.0f;", STR_ARG(count));
        return finish(w, &c);
    }
    put(&c, "%s %.*s[%lld];", w->type, STR_ARG(acc), (long long)w->items);
    if (counts(w))
        put(&c, "float %.*s[%lld] = {};", STR_ARG(count), (long long)w->items);
    put(&c, "#pragma unroll");
    put(&c, "for (int %.*s = 0; %.*s < %lld; %.*s++)", STR_ARG(o), STR_ARG(o), (long long)w->items,
        STR_ARG(o));
    put(&c, "    %.*s[%.*s] = %.*s;", STR_ARG(acc), STR_ARG(o), STR_ARG(w->identity));
    return finish(w, &c);
}

static str mean_of(struct window *w, str acc) {
    int64_t terms = 1;
    str count = count_text(w);
    for (size_t i = 0; i < w->shape.naxes; i++)
        terms *= w->shape.axes[i].size;
    if (w->fold->body->reduce->op != REDUCTION_MEAN)
        return acc;
    return counts(w) ? sheet_printf(w->sh, "%.*s / %.*s", STR_ARG(acc), STR_ARG(count))
                     : sheet_printf(w->sh, "%.*s / %lld.0f", STR_ARG(acc), (long long)terms);
}

/* Where the results end: the index of the loop over them is past the last. */
static void put_end(struct window *w, struct code *c) {
    size_t v = w->down >= 0 ? axis(w, w->down)->out : w->last;
    str extent = scope_int(&w->k, w->in->task->tensors[w->fold->tensor].extent[v]);
    put(c, "if (%.*s >= %.*s)", STR_ARG(w->k.var[v]), STR_ARG(extent));
    put(c, "    break;");
}

static void put_stores(struct window *w, struct code *c) {
    struct maps maps;
    struct buf lines;
    str value = name(w, "value");
    buf_init(&lines, TEXT_MAX);
    bool ok = maps_write(&w->k, w->fold, value, &lines, &maps);
    put_text(c, buf_str(&lines));
    for (size_t i = 0; ok && i < maps.n; i++) {
        str to = scope_pointer(&w->k, maps.out[i].tensor, true);
        buf_clear(&lines);
        ok = scope_place(&w->k, &lines);
        str at = sheet_keep(w->sh, &lines);
        bool truth = w->in->task->tensors[maps.out[i].tensor].dtype == DTYPE_BOOL;
        put(c, w->hint && !truth ? "__stcs(%.*s + %.*s, %.*s);" : "%.*s[%.*s] = %.*s;", STR_ARG(to),
            STR_ARG(at), STR_ARG(maps.out[i].packed));
    }
    buf_release(&lines);
}

static str results_text(struct window *w) {
    struct code c = {.depth = 0};
    str o = name(w, "o"), value = name(w, "value"), first = name(w, "first");
    buf_init(&c.b, TEXT_MAX);
    name_variables(w);
    if (w->items > 1) {
        open_loop(&c, o, w->items);
        if (w->down >= 0)
            put(&c, "const %s %.*s = %.*s + %.*s;", scope_index_type(&w->k),
                STR_ARG(w->k.var[axis(w, w->down)->out]), STR_ARG(first), STR_ARG(o));
        put_column(w, false, &c);
        put_end(w, &c);
    }
    str mean = mean_of(w, acc_text(w));
    put(&c, "const %s %.*s = %.*s;", w->type, STR_ARG(value), STR_ARG(mean));
    put_stores(w, &c);
    if (w->items > 1)
        close_loop(&c);
    return finish(w, &c);
}

/* ---- the kernel ---- */

static uint32_t outer_vars(const struct window *w) {
    uint32_t vars = ((UINT32_C(1) << w->fold->nindex) - 1) & ~(UINT32_C(1) << w->last);
    return w->down >= 0 ? vars & ~(UINT32_C(1) << axis(w, w->down)->out) : vars;
}

static str tiles_plan(struct window *w, size_t var, int64_t results) {
    str extent = sheet_plan(w->sh, w->in->task->tensors[w->fold->tensor].extent[var]);
    return results == 1
               ? extent
               : sheet_printf(w->sh, "ceil_div(%.*s, %lld)", STR_ARG(extent), (long long)results);
}

static int64_t results_across(const struct window *w) {
    return w->down >= 0 ? w->lanes : w->block * w->items;
}
static int64_t results_down(const struct window *w) {
    return w->block / w->lanes * w->items;
}

static str threads_text(struct window *w) {
    str lane = name(w, "lane"), down = name(w, "down");
    if (w->down < 0 || w->lanes == w->block)
        return sheet_printf(w->sh, "const int %.*s = threadIdx.x;", STR_ARG(lane));
    return sheet_printf(
        w->sh, "const int %.*s = threadIdx.x %% %lld;\nconst int %.*s = threadIdx.x / %lld;",
        STR_ARG(lane), (long long)w->lanes, STR_ARG(down), (long long)w->lanes);
}

/* The thread's first result along `down`. */
static void put_first(struct window *w, struct code *c) {
    str first = w->items > 1 ? name(w, "first") : w->k.var[axis(w, w->down)->out];
    str top = name(w, "top"), down = name(w, "down");
    const char *type = scope_index_type(&w->k);
    if (w->lanes == w->block)
        put(c, "const %s %.*s = %.*s;", type, STR_ARG(first), STR_ARG(top));
    else if (w->items > 1)
        put(c, "const %s %.*s = %.*s + %.*s * %lld;", type, STR_ARG(first), STR_ARG(top),
            STR_ARG(down), (long long)w->items);
    else
        put(c, "const %s %.*s = %.*s + %.*s;", type, STR_ARG(first), STR_ARG(top), STR_ARG(down));
}

/* Tiles are counted in ints, whatever indices are: a grid has no more. */
static str tiles_int(struct window *w, const char *what, str plan) {
    str n = scope_int_plan(&w->k, what, plan);
    return w->k.wide ? sheet_printf(w->sh, "(int)%.*s", STR_ARG(n)) : n;
}

static str place_text(struct window *w, str used) {
    struct code c = {.depth = 0};
    const char *type = scope_index_type(&w->k), *wide = w->k.wide ? "LL" : "";
    str tile = name(w, "tile"), corner = name(w, "corner"), top = name(w, "top");
    str outer = w->down >= 0 ? name(w, "outer") : tile, lane = name(w, "lane");
    buf_init(&c.b, TEXT_MAX);
    name_variables(w);
    str across = tiles_int(w, "tiles_across", tiles_plan(w, w->last, results_across(w)));
    put(&c, "int %.*s = blockIdx.x;", STR_ARG(tile));
    put(&c, "const %s %.*s = %.*s %% %.*s * %lld%s;", type, STR_ARG(corner), STR_ARG(tile),
        STR_ARG(across), (long long)results_across(w), wide);
    put(&c, "%.*s /= %.*s;", STR_ARG(tile), STR_ARG(across));
    if (w->down >= 0) {
        size_t v = axis(w, w->down)->out;
        str down = tiles_int(w, "tiles_down", tiles_plan(w, v, results_down(w)));
        put(&c, "const %s %.*s = %.*s %% %.*s * %lld%s;", type, STR_ARG(top), STR_ARG(tile),
            STR_ARG(down), (long long)results_down(w), wide);
        put(&c, "const int %.*s = %.*s / %.*s;", STR_ARG(outer), STR_ARG(tile), STR_ARG(down));
        put_first(w, &c);
    }
    if (w->down >= 0 || w->items == 1)
        put(&c, "const %s %.*s = %.*s + %.*s;", type, STR_ARG(w->k.var[w->last]), STR_ARG(corner),
            STR_ARG(lane));
    put_text(&c, place_int_coordinates(&w->k, w->fold, outer_vars(w), outer, used));
    return finish(w, &c);
}

/* Threads without a result leave, once they have helped to fill the tile. */
static str leave_text(struct window *w) {
    const struct tensor *y = &w->in->task->tensors[w->fold->tensor];
    str q = w->k.var[w->last], extent = scope_int(&w->k, y->extent[w->last]);
    if (w->down < 0)
        return w->items > 1 ? S("")
                            : sheet_printf(w->sh, "if (%.*s >= %.*s)\n    return;", STR_ARG(q),
                                           STR_ARG(extent));
    size_t v = axis(w, w->down)->out;
    str p = w->items > 1 ? name(w, "first") : w->k.var[v];
    str rows = scope_int(&w->k, y->extent[v]);
    return sheet_printf(w->sh, "if (%.*s >= %.*s || %.*s >= %.*s)\n    return;", STR_ARG(q),
                        STR_ARG(extent), STR_ARG(p), STR_ARG(rows));
}

static str headline(struct window *w) {
    if (w->down < 0)
        return sheet_printf(w->sh, "A block takes %lld neighbouring results, a thread %lld.",
                            (long long)results_across(w), (long long)w->items);
    return sheet_printf(w->sh,
                        "A block takes a tile of %lld x %lld results; a thread %lld below each "
                        "other.",
                        (long long)results_down(w), (long long)results_across(w),
                        (long long)w->items);
}

static void launch(struct window *w, const struct window_tile *tile) {
    struct sheet *sh = w->sh;
    str args = scope_args(&w->k), across = tiles_plan(w, w->last, results_across(w));
    str outer = place_count(sh, w->in, w->fold, outer_vars(w)), grid = across;
    if (w->down >= 0) {
        str down = tiles_plan(w, axis(w, w->down)->out, results_down(w));
        grid = sheet_printf(sh, "%.*s*%.*s", STR_ARG(across), STR_ARG(down));
    }
    grid = sheet_printf(sh, "%.*s*%.*s", STR_ARG(grid), STR_ARG(outer));
    str shared = w->halo ? sheet_printf(sh, ", %lld", (long long)tile->bytes) : S("");
    sheet_step(sh, "launch %.*s<<<%.*s, %lld%.*s>>>(%.*s)", STR_ARG(w->k.name), STR_ARG(grid),
               (long long)w->block, STR_ARG(shared), STR_ARG(args));
}

static str shared_text(struct window *w) {
    enum dtype t = w->in->task->tensors[w->shape.taps[0].read->ref].dtype;
    str slab = name(w, "slab");
    return !w->halo ? S("")
                    : sheet_printf(w->sh, "extern __shared__ __align__(16) %s %.*s[];",
                                   dtype_info(t)->cuda, STR_ARG(slab));
}

/* What may mention coordinates, and then the place that declares those that it does. */
static void put_body(struct window *w, const struct window_tile *tile, struct slots *t) {
    str used = S("");
    slots_put(t, "weights", weights_text(w));
    slots_put(t, "fill", w->halo ? window_tile_fill(w, tile) : S(""));
    slots_put(t, "loops", loops_text(w, tile));
    slots_put(t, "results", results_text(w));
    slots_put(t, "begin", begin_text(w));
    for (size_t i = 0; i < t->n; i++)
        used = sheet_printf(w->sh, "%.*s\n%.*s", STR_ARG(used), STR_ARG(t->at[i].text));
    slots_put(t, "place", place_text(w, used));
}

bool window_write_kernel(struct window *w) {
    struct sheet *sh = w->sh;
    struct slots t = {.mem = sh->mem};
    struct window_tile tile = {.bytes = 0};
    str y = w->in->task->tensors[w->fold->tensor].name;
    scope_init(&w->k, sh, w->st, sheet_printf(sh, "window_%.*s", STR_ARG(y)).p);
    w->k.statement = w->fold;
    name_variables(w);
    if (w->halo)
        window_tile_of(w, &tile);
    put_body(w, &tile, &t);
    slots_put(&t, "leave", leave_text(w));
    slots_put(&t, "threads", threads_text(w));
    slots_put(&t, "headline", headline(w));
    slots_put(&t, "kernel", w->k.name);
    slots_number(&t, "block", w->block);
    slots_put(&t, "shared", shared_text(w));
    slots_put(&t, "params", scope_params(&w->k));
    launch(w, &tile);
    return sheet_put(sh, "window/kernel.cu", &t, &sh->kernels);
}
