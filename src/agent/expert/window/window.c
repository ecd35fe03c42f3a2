/* family_window: folds over a small range beside an index, `x[2*p + r - 1]`: pooling of any rank,
 * with stride, dilation and padding, and depthwise convolution, where the terms have weights.
 *
 * An axis of a window is a result's index and the reduced variable that runs beside it. A tap is a
 * read at such places: it is loaded once and held in a register for all results of a thread that
 * share it. Sizes of windows, strides and dilations are numbers in the text; sizes that they are
 * made from are required by the plan.
 *
 * A block takes a tile of results, the lanes along the innermost axis (kernel.cu). A thread's
 * results follow each other along another axis of the window, so that a row of input that several
 * of them need is read once; where the innermost axis is the only one, they lie a block apart. All
 * loops over the window are unrolled. The input may go through a tile in shared memory: all that
 * the results of a block need, loaded once and in order, with what lies beyond the input's edges
 * filled in. Its places are those of the window's axes, the innermost last; rows are whole vectors.
 */
#include "agent/expert/window/window.h"
#include "agent/expert/plan/step_facts.h"
#include "spec/domain.h"
#include "spec/pattern.h"
#include <stdlib.h>

#define UNROLL_MOST  768 /* terms written out for one thread */
#define WEIGHTS_MOST 64  /* registers for them */
#define TILE_MOST    (96 << 10)
#define LINE_LEAST   12 /* places of a window that goes through registers */
#define LINE_ALWAYS  64

enum { WINDOW_WEIGHTS = 4 };
/* A step on its way into a sheet. */
struct window {
    struct sheet *sh;
    const struct step *st;
    const struct inst *in;
    const struct statement *fold;
    struct window_shape shape;
    size_t last; /* innermost variable: lanes run along it */
    /* Axes by number, -1: none. `down`: where a thread's results follow each other; `across`: along
     * the lanes. Without `down` a thread's results lie along the lanes, a block apart. */
    int down, across;
    /* decisions, as far as the shape allows them */
    int64_t block, items, lanes, width;
    bool halo, separable, hint;
    const char *type;
    str identity;
    struct slots slots;
    struct scope k;
    struct { /* reads that are the same for all results of a block: its weights */
        const struct expr *read;
        str name;
    } weights[WINDOW_WEIGHTS];
    size_t nweights;
};

static bool claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                  bool *take) {
    struct window_shape shape;
    const struct statement *s = &f->task->statements[first];
    (void)b;
    if (s->body->kind != EXPR_REDUCE || !window_match(f->inst, s, &shape))
        return false;
    maps_claim(f, done, first, take);
    return true;
}

/* ---- decisions ---- */

/* Input rows between the first and the last that `results` of them need along an axis, both
 * included. */
static int64_t reach_of(const struct window_axis *x, int64_t results) {
    return (results - 1) * x->stride + (x->size - 1) * x->dilation + 1;
}

/* Results of a thread slide over shared rows. */
static bool slides(const struct window *w) {
    return w->down >= 0 && w->items > 1;
}

/* The shared tile of a block, for the only tap: its size, how it is filled, and the place in it of
 * the tap that the loops are at. */
struct window_tile {
    int64_t depth[WINDOW_AXES]; /* by axis: places of the tile along it */
    int64_t shift;              /* columns before the first that is needed, for aligned vectors */
    int64_t columns;            /* of a row, those included */
    int64_t bytes;
};
static void find_axes(struct window *w) {
    w->down = w->across = -1;
    for (size_t i = 0; i < w->shape.naxes; i++) {
        if (w->shape.axes[i].out == w->last)
            w->across = (int)i;
        else
            w->down = (int)i;
    }
}

/* Terms that are written out for one thread, loops over shared rows unrolled. */
static int64_t unrolled(const struct window *w) {
    int64_t n = w->items;
    for (size_t i = 0; i < w->shape.naxes; i++)
        n *= (int)i == w->down && w->items > 1 ? reach_of(&w->shape.axes[i], w->items)
                                               : w->shape.axes[i].size;
    return n;
}

#define SIDES 8 /* columns that a tile costs beside those it needs, in whole vectors */

/* The power of two along the lanes with which the tiles of a row read the fewest columns. */
static int64_t choose_lanes(const struct window *w, int64_t most) {
    int64_t extent = w->in->tensors[w->fold->tensor].extent[w->last], best = 8, least = INT64_MAX;
    for (int64_t n = 8; n <= most; n *= 2) {
        int64_t tiles = (extent + n - 1) / n;
        int64_t columns = w->across < 0 ? n : reach_of(&w->shape.axes[w->across], n) + SIDES;
        if (tiles * columns <= least) {
            least = tiles * columns;
            best = n;
        }
    }
    return best;
}

static int64_t round_up(int64_t n, int64_t to) {
    return (n + to - 1) / to * to;
}

static const struct window_tap *the_tap(const struct window *w) {
    return &w->shape.taps[0];
}

static enum dtype element(const struct window *w) {
    return w->in->task->tensors[the_tap(w)->read->ref].dtype;
}

/* Places along the innermost axis are columns; the tap's last index must run along it. */
static bool fits(const struct window *w) {
    const struct window_tap *tap = the_tap(w);
    size_t k = tap->read->nargs - 1;
    for (size_t i = 0; i < w->shape.naxes; i++)
        if (tap->along[i].index < 0)
            return false;
    if (w->across >= 0)
        return tap->along[w->across].index == (int)k;
    return tap->read->args[k]->kind == EXPR_INDEX && tap->read->args[k]->ref == w->last;
}

static bool tile_of(const struct window *w, struct window_tile *out) {
    int64_t along = w->down >= 0 ? w->lanes : w->block * w->items, rows = 1;
    *out = (struct window_tile){.shift = 0};
    if (!fits(w))
        return false;
    for (int i = 0; i < (int)w->shape.naxes; i++) {
        const struct window_axis *x = &w->shape.axes[i];
        out->depth[i] = i == w->down     ? reach_of(x, w->block / w->lanes * w->items)
                        : i == w->across ? 1
                                         : x->size;
        rows *= out->depth[i];
    }
    out->columns = along;
    if (w->across >= 0) {
        int64_t offset = the_tap(w)->along[w->across].offset;
        out->shift = (offset % w->width + w->width) % w->width;
        out->columns = reach_of(&w->shape.axes[w->across], along) + out->shift;
    }
    out->columns = round_up(out->columns, w->width);
    out->bytes = rows * out->columns * (int64_t)dtype_info(element(w))->bytes;
    return true;
}

static bool uniform_pad(const struct window *w) {
    const struct expr *node = w->shape.taps[0].node;
    return node->kind != EXPR_PAD || (expr_vars(node->args[1]) == 0 && !expr_reads(node->args[1]));
}

/* Vectors into the tile: rows of the input begin aligned, and so do the tile's. */
static int64_t tile_width(const struct window *w, int64_t want) {
    const struct window_tap *tap = &w->shape.taps[0];
    size_t k = tap->read->nargs - 1;
    bool along = w->across >= 0 && tap->along[w->across].index == (int)k;
    bool bare = tap->read->args[k]->kind == EXPR_INDEX && tap->read->args[k]->ref == w->last;
    int64_t stride = along ? w->shape.axes[w->across].stride : 1;
    int64_t bytes = (int64_t)dtype_info(w->in->task->tensors[tap->read->ref].dtype)->bytes;
    int64_t extents[] = {w->in->tensors[tap->read->ref].extent[k], w->lanes * stride, 16 / bytes};
    int64_t width = along || bare ? pieces_width(want, extents, 3) : 1;
    while (width > 1 && !inst_divides(w->in, w->in->task->tensors[tap->read->ref].extent[k], width))
        width /= 2;
    return width;
}

/* A tile that does not fit becomes smaller. */
static void decide_halo(struct window *w) {
    struct window_tile tile;
    w->width = 1;
    w->halo = w->shape.ntaps == 1 && uniform_pad(w) && sheet_decision(w->sh, "halo", 1) != 0 &&
              tile_of(w, &tile);
    if (!w->halo)
        return;
    int64_t width = sheet_decision(w->sh, "vector-width", 4);
    w->width = tile_width(w, width);
    while (tile_of(w, &tile) && tile.bytes > TILE_MOST && w->block > 32) {
        if (w->items > 1)
            w->items /= 2;
        else
            w->block /= 2;
        w->lanes = w->down < 0 || w->lanes > w->block ? w->block : w->lanes;
        w->width = tile_width(w, width);
    }
    w->halo = tile.bytes <= TILE_MOST;
    w->width = w->halo ? w->width : 1;
}

static void decide(struct window *w) {
    struct sheet *sh = w->sh;
    w->block = sheet_decision(sh, "block", 256);
    w->items = sheet_decision(sh, "items", 8);
    w->hint = sheet_decision(sh, "cache-hint", 0) != 0;
    while (w->items > 1 && unrolled(w) > UNROLL_MOST)
        w->items /= 2;
    int64_t lanes = sheet_decision(sh, "tile-w", 128);
    w->lanes = w->down < 0 ? w->block : choose_lanes(w, lanes < w->block ? lanes : w->block);
    decide_halo(w);
    w->separable = w->shape.separable && slides(w) && w->fold->body->reduce->op != REDUCTION_PROD &&
                   sheet_decision(sh, "separable", 1) != 0;
}

/* ---- weights ---- */

static bool is_tap(const struct window *w, const struct expr *e) {
    for (size_t i = 0; i < w->shape.ntaps; i++)
        if (expr_same(w->shape.taps[i].node, e))
            return true;
    return false;
}

/* The same for all threads of a block, one for every place in the window, and few. */
static bool is_weight(const struct window *w, const struct expr *e) {
    uint32_t uses = expr_vars(e), own = UINT32_C(1) << w->last;
    int64_t n = 1;
    if (e->kind != EXPR_READ)
        return false;
    for (size_t i = 0; i < w->shape.naxes; i++) {
        const struct window_axis *x = &w->shape.axes[i];
        own |= (int)i == w->down ? UINT32_C(1) << x->out : 0;
        n *= uses >> x->reduced & 1 ? x->size : 1;
    }
    return !(uses & own) && n > 1 && n <= WEIGHTS_MOST;
}

static void find_weights(struct window *w, const struct expr *e) {
    if (is_tap(w, e) || e->kind == EXPR_PAD || e->kind == EXPR_IF)
        return;
    for (size_t i = 0; i < w->nweights; i++)
        if (expr_same(w->weights[i].read, e))
            return;
    if (is_weight(w, e) && w->nweights < WINDOW_WEIGHTS) {
        str x = w->in->task->tensors[e->ref].name;
        w->weights[w->nweights].read = e;
        w->weights[w->nweights++].name = sheet_name(w->sh, TEXT(w->sh, "$_kept", x));
        return;
    }
    for (size_t i = 0; i < e->nargs; i++)
        find_weights(w, e->args[i]);
}

/* ---- expressions of the generator's own making ---- */

/* The read with some of its indices replaced (NULL: kept). */
static struct expr *read_at(struct sheet *sh, const struct expr *read, struct expr *const *index) {
    struct expr *e = arena_new_of(sh->mem, struct expr);
    *e = *read;
    e->args = arena_array(sh->mem, struct expr *, read->nargs ? read->nargs : 1);
    for (size_t i = 0; i < read->nargs; i++)
        e->args[i] = index[i] ? index[i] : read->args[i];
    return e;
}

/* Comparisons for the indices of `read`, a tap of this window, that may lie outside: those that are
 * set in `moved`, and where the tap is not sure all others that are more than a variable. */
static str inside_text(struct window *w, const struct window_tap *tap, const struct expr *read,
                       struct expr *const *moved) {
    const struct tensor *x = &w->in->task->tensors[read->ref];
    const struct tensor *y = &w->in->task->tensors[w->fold->tensor];
    str type = w->k.wide ? S("unsigned long long") : S("unsigned");
    str all = S("");
    for (size_t i = 0; i < read->nargs; i++) {
        const struct expr *e = tap->read->args[i];
        bool bare = e->kind == EXPR_INDEX && e->ref < w->fold->nindex &&
                    expr_same(x->extent[i], y->extent[e->ref]);
        if (!moved[i] && (bare || tap->sure))
            continue;
        str at = scope_text(&w->k, read->args[i]), extent = scope_int(&w->k, x->extent[i]);
        bool plain = str_find(at, S(" ")) == at.n;
        all = TEXT(w->sh, plain ? "$$($)$ < ($)$" : "$$($)($) < ($)$", all,
                   all.n ? S(" && ") : S(""), type, at, type, extent);
    }
    return all;
}

/* ---- pieces ---- */

static const struct window_axis *axis(const struct window *w, int i) {
    return &w->shape.axes[i];
}

static bool is_outer(const struct window *w, int i) {
    return i != w->down && i != w->across;
}

/* A thread's results lie along the lanes, a block apart. */
static bool is_lanewise(const struct window *w) {
    return w->down < 0 && w->items > 1;
}

/* "+ 3", "- 3", or nothing. */
static str plus(struct window *w, int64_t v) {
    return v == 0 ? S("") : TEXT(w->sh, v < 0 ? " - $" : " + $", sheet_number(w->sh, llabs(v)));
}

static str times(struct window *w, str what, int64_t v) {
    return v == 1 ? what : TEXT(w->sh, "$ * $", what, sheet_number(w->sh, v));
}

/* Results beyond the last are computed and dropped; what else they read is that of the last. */
static str clamped(struct window *w, size_t var, str text) {
    const struct tensor *y = &w->in->task->tensors[w->fold->tensor];
    if (!(w->shape.beside >> var & 1))
        return text;
    return TEXT(w->sh, "min($, $ - 1)", text, scope_int(&w->k, y->extent[var]));
}

static void name_variables(struct window *w) {
    for (size_t v = 0; v < w->fold->nindex; v++)
        w->k.var[v] = scope_variable(&w->k, v);
    for (size_t i = 0; i < w->shape.naxes; i++)
        w->k.var[w->shape.axes[i].reduced] = scope_variable(&w->k, w->shape.axes[i].reduced);
    w->k.var[w->fold->nvars] = S("input_row");
}

static str extent_text(struct window *w, size_t var) {
    return scope_int(&w->k, w->in->task->tensors[w->fold->tensor].extent[var]);
}

static bool counts(const struct window *w) {
    return w->fold->body->reduce->op == REDUCTION_MEAN && w->fold->body->reduce->guard;
}

static void put_loop(struct slots *row, str at, int64_t size) {
    slots_put(row, "at", at);
    slots_number(row, "size", size);
}

/* ---- the tile: filling ---- */

/* Places along an axis are counted out of the flat number of a vector, the innermost first. */
static str digit(struct window *w, int64_t *below, int64_t n, bool last) {
    str text = S("vector");
    if (*below > 1)
        text = TEXT(w->sh, "$ / $", text, sheet_number(w->sh, *below));
    if (!last)
        text = TEXT(w->sh, "$ % $", text, sheet_number(w->sh, n));
    *below *= n;
    return text;
}

/* Where a vector of the tile lies in the input: column, row and the places along the other axes. */
static void put_places(struct window *w, const struct window_tile *t, struct expr **index) {
    struct sheet *sh = w->sh;
    const struct window_tap *tap = the_tap(w);
    int64_t below = 1;
    size_t k = tap->read->nargs - 1;
    int64_t others = 0;
    for (int i = 0; i < (int)w->shape.naxes; i++)
        others += is_outer(w, i);
    str place = digit(w, &below, t->columns / w->width, w->down < 0 && others == 0);
    int64_t stride = w->across >= 0 ? axis(w, w->across)->stride : 1;
    int64_t offset = w->across >= 0 ? tap->along[w->across].offset - t->shift : 0;
    slots_put(&w->slots, "input_column",
              TEXT(sh, "$$ + $", times(w, S("corner"), stride), plus(w, offset),
                   times(w, place, w->width)));
    w->k.var[w->fold->nvars + 1] = S("column");
    index[k] = expr_variable(sh->mem, w->fold->nvars + 1);
    if (w->down >= 0) {
        place = digit(w, &below, t->depth[w->down], others == 0);
        slots_put(&w->slots, "tile_row",
                  TEXT(sh, "$$ + $", times(w, S("top"), axis(w, w->down)->stride),
                       plus(w, tap->along[w->down].offset), place));
        w->k.var[w->fold->nvars] = S("row");
        index[tap->along[w->down].index] = expr_variable(sh->mem, w->fold->nvars);
    }
    for (int i = (int)w->shape.naxes; i-- > 0;)
        if (is_outer(w, i)) {
            struct slots *row = slots_row(&w->slots, "places");
            slots_put(row, "place", w->k.var[axis(w, i)->reduced]);
            slots_put(row, "place_value", digit(w, &below, t->depth[i], --others == 0));
        }
}

static str pad_value(struct window *w) {
    const struct expr *node = the_tap(w)->node;
    return node->kind == EXPR_PAD ? scope_text(&w->k, node->args[1]) : S("0");
}

static bool put_fill(struct window *w, const struct window_tile *t) {
    struct sheet *sh = w->sh;
    struct slots *s = &w->slots, none = {.mem = sh->mem};
    struct expr *index[TASK_MAX_RANK] = {NULL};
    int64_t rows = 1, bytes = w->width * (int64_t)dtype_info(element(w))->bytes;
    for (size_t i = 0; i < w->shape.naxes; i++)
        rows *= t->depth[i];
    put_places(w, t, index);
    struct expr *read = read_at(sh, the_tap(w)->read, index);
    str from = scope_pointer(&w->k, read->ref, false);
    slots_put(s, "from", TEXT(sh, "$ + $", from, scope_offset_text(&w->k, read)));
    slots_put(s, "padding", pad_value(w));
    slots_put(s, "pad", scope_packed(&w->k, read->ref, read->value_kind, pad_value(w)));
    slots_put(s, "within", inside_text(w, the_tap(w), read, index));
    slots_flag(s, "async", bytes >= 4); /* cp.async copies 4 bytes at the least */
    slots_flag(s, "pairs", w->width > 1);
    slots_flag(s, "wide", w->width > 1);
    slots_number(s, "bytes", bytes);
    slots_put(s, "element", str_view(dtype_info(element(w))->name));
    slots_put(s, "element_type", str_view(dtype_info(element(w))->cuda));
    slots_number(s, "vectors", rows * t->columns / w->width);
    slots_number(s, "width", w->width);
    return bytes < 4 || sheet_function(sh, "window/copy.cu", &none);
}

/* ---- the tile: reading ---- */

/* The place along an axis of the tap that the loops are at. */
static str axis_place(struct window *w, int i) {
    const struct window_axis *x = axis(w, i);
    str reduced = w->k.var[x->reduced];
    if (i != w->down)
        return reduced;
    str tap = slides(w) ? S("input_row") : times(w, reduced, x->dilation);
    if (w->lanes == w->block)
        return tap;
    return TEXT(w->sh, "$ + $", times(w, S("down"), x->stride * w->items), tap);
}

static str column_place(struct window *w, const struct window_tile *t) {
    str at = is_lanewise(w) ? TEXT(w->sh, "(result * $ + lane)", sheet_number(w->sh, w->block))
                            : S("lane");
    if (w->across < 0)
        return at;
    const struct window_axis *x = axis(w, w->across);
    return TEXT(w->sh, "$ + $$", times(w, at, x->stride),
                times(w, w->k.var[x->reduced], x->dilation), plus(w, t->shift));
}

/* at * n + place */
static str nest(struct window *w, str at, int64_t n, str place) {
    bool bare = str_find(at, S(" ")) == at.n;
    return at.n == 0
               ? place
               : TEXT(w->sh, bare ? "$ * $ + $" : "($) * $ + $", at, sheet_number(w->sh, n), place);
}

static str tile_tap(struct window *w, const struct window_tile *t) {
    str at = S("");
    for (int i = 0; i < (int)w->shape.naxes; i++)
        if (is_outer(w, i))
            at = nest(w, at, t->depth[i], axis_place(w, i));
    if (w->down >= 0)
        at = nest(w, at, t->depth[w->down], axis_place(w, w->down));
    at = nest(w, at, t->columns, column_place(w, t));
    return scope_unpacked(&w->k, the_tap(w)->read->ref, TEXT(w->sh, "slab[$]", at));
}

/* ---- taps ---- */

/* stride·first + input_row + offset */
static struct expr *row_index(struct window *w, const struct window_tap *tap) {
    struct sheet *sh = w->sh;
    const struct window_axis *x = axis(w, w->down);
    struct expr *at = expr_variable(sh->mem, x->out);
    int64_t offset = tap->along[w->down].offset;
    if (x->stride > 1)
        at = expr_pair(sh->mem, EXPR_MUL, expr_number(sh->mem, x->stride), at);
    at = expr_pair(sh->mem, EXPR_ADD, at, expr_variable(sh->mem, w->fold->nvars));
    if (offset)
        at = expr_pair(sh->mem, offset < 0 ? EXPR_SUB : EXPR_ADD, at,
                       expr_number(sh->mem, llabs(offset)));
    return at;
}

/* Where an index may carry a read out of its tensor, the load goes to the first element instead, so
 * that it needs no branch and loads can be under way together. */
static void put_read(struct window *w, const struct window_tap *tap, struct slots *row) {
    struct sheet *sh = w->sh;
    struct expr *index[TASK_MAX_RANK] = {NULL}, *moved[TASK_MAX_RANK] = {NULL};
    int loose = slides(w) ? w->down : is_lanewise(w) ? w->across : -1;
    if (slides(w) && tap->along[w->down].index >= 0)
        index[tap->along[w->down].index] = row_index(w, tap);
    struct expr *read = read_at(sh, tap->read, index);
    if (loose >= 0 && tap->along[loose].index >= 0)
        moved[tap->along[loose].index] = read->args[tap->along[loose].index];
    str inside = inside_text(w, tap, read, moved);
    slots_put(row, "inside", inside);
    if (inside.n == 0) {
        slots_put(row, "read", scope_text(&w->k, read));
        return;
    }
    str offset = scope_offset_text(&w->k, read), from = scope_pointer(&w->k, read->ref, false);
    str is_inside = sheet_name(sh, TEXT(sh, "$_inside", scope_pointer_name(&w->k, read->ref)));
    str element = TEXT(sh, "$[$ ? $ : 0]", from, is_inside, offset);
    bool pads = tap->node->kind == EXPR_PAD;
    slots_put(row, "is_inside", is_inside);
    slots_put(row, "read", scope_unpacked(&w->k, read->ref, element));
    slots_put(row, "otherwise", pads ? scope_text(&w->k, tap->node->args[1]) : S("0"));
}

static void put_taps(struct window *w, const struct window_tile *tile) {
    for (size_t i = 0; i < w->shape.ntaps; i++) {
        const struct window_tap *tap = &w->shape.taps[i];
        struct slots *row = slots_row(&w->slots, "taps");
        str x = w->in->task->tensors[tap->read->ref].name;
        str to = sheet_name(w->sh, TEXT(w->sh, "$_tap", x));
        slots_put(row, "tap", to);
        slots_put(row, "tap_type", value_type(tap->node->value_kind));
        if (slides(w))
            w->k.var[axis(w, w->down)->out] = S("first");
        if (w->halo) {
            slots_put(row, "inside", S(""));
            slots_put(row, "read", tile_tap(w, tile));
        } else
            put_read(w, tap, row);
        scope_hold(&w->k, tap->node, to);
    }
}

/* ---- weights in registers ---- */

static bool has_axis(const struct window *w, size_t weight, size_t i) {
    return expr_vars(w->weights[weight].read) >> w->shape.axes[i].reduced & 1;
}

static str weight_text(struct window *w, size_t n) {
    str text = w->weights[n].name;
    for (size_t i = 0; i < w->shape.naxes; i++)
        if (has_axis(w, n, i))
            text = TEXT(w->sh, "$[$]", text, w->k.var[w->shape.axes[i].reduced]);
    return text;
}

/* All weights, loaded before anything else is waited for. */
static void put_weights(struct window *w) {
    for (size_t n = 0; n < w->nweights; n++) {
        const struct expr *read = w->weights[n].read;
        struct slots *row = slots_row(&w->slots, "weights");
        str sizes = S("");
        for (size_t i = 0; i < w->shape.naxes; i++) {
            const struct window_axis *x = &w->shape.axes[i];
            if (!has_axis(w, n, i))
                continue;
            sizes = TEXT(w->sh, "$[$]", sizes, sheet_number(w->sh, x->size));
            put_loop(slots_row(row, "axes"), w->k.var[x->reduced], x->size);
        }
        slots_put(row, "weight_type", value_type(read->value_kind));
        slots_put(row, "weight", w->weights[n].name);
        slots_put(row, "sizes", sizes);
        slots_put(row, "value", scope_text(&w->k, read));
        slots_put(row, "element", weight_text(w, n));
    }
}

/* ---- terms ---- */

/* The term combined with `into`. */
static str step_text(struct window *w, str into) {
    const struct expr *body = w->fold->body;
    enum reduction op = body->reduce->op;
    for (size_t i = 0; i < w->nweights; i++)
        scope_hold(&w->k, w->weights[i].read, weight_text(w, i));
    str term = scope_text(&w->k, body->args[0]);
    bool bare = str_find(term, S(" ")) == term.n;
    bool extreme = op == REDUCTION_MAX || op == REDUCTION_MIN;
    bool product = body->args[0]->kind == EXPR_MUL;
    if (!bare && !extreme && !(product && op != REDUCTION_PROD))
        term = TEXT(w->sh, "($)", term);
    return fold_step(w->sh, w->fold, into, term);
}

/* Which of the window's places a row of input is for a result, if any. */
static void put_reached(struct window *w) {
    const struct window_axis *x = axis(w, w->down);
    struct sheet *sh = w->sh;
    str dilation = sheet_number(sh, x->dilation), size = sheet_number(sh, x->size);
    str furthest = sheet_number(sh, (x->size - 1) * x->dilation);
    slots_put(&w->slots, "result_row", times(w, S("result"), x->stride));
    slots_put(&w->slots, "is_reached",
              x->dilation > 1
                  ? TEXT(sh, "reach >= 0 && reach <= $ && reach % $ == 0", furthest, dilation)
                  : TEXT(sh, "reach >= 0 && reach < $", size));
    w->k.var[x->out] = clamped(w, x->out, S("(first + result)"));
    w->k.var[x->reduced] = x->dilation > 1 ? TEXT(sh, "(reach / $)", dilation) : S("reach");
}

static str column_text(struct window *w) {
    return TEXT(w->sh, "corner + result * $ + lane", sheet_number(w->sh, w->block));
}

static void put_terms(struct window *w, const struct window_tile *tile) {
    struct slots *t = &w->slots;
    const struct expr *guard = w->fold->body->reduce->guard;
    str acc = w->items == 1 ? S("acc") : S("acc[result]");
    for (int i = 0; i < (int)w->shape.naxes; i++)
        if (is_outer(w, i))
            put_loop(slots_row(t, "outer_axes"), w->k.var[axis(w, i)->reduced], axis(w, i)->size);
    if (is_lanewise(w))
        slots_put(t, "column_inside", clamped(w, w->last, column_text(w)));
    if (w->down >= 0) {
        const struct window_axis *x = axis(w, w->down);
        slots_put(t, "input", slides(w) ? S("input_row") : w->k.var[x->reduced]);
        slots_number(t, "inputs", slides(w) ? reach_of(x, w->items) : x->size);
    }
    slots_put(t, "across", w->across >= 0 ? w->k.var[axis(w, w->across)->reduced] : S(""));
    if (w->across >= 0)
        slots_number(t, "across_size", axis(w, w->across)->size);
    put_taps(w, tile);
    if (w->separable)
        slots_put(t, "line_step", step_text(w, S("line")));
    if (slides(w))
        put_reached(w);
    slots_put(t, "acc", acc);
    slots_put(t, "count", w->items == 1 ? S("count") : S("count[result]"));
    slots_put(t, "step",
              w->separable ? fold_step(w->sh, w->fold, acc, S("line")) : step_text(w, acc));
    slots_put(t, "guard", guard ? scope_text(&w->k, guard) : S(""));
}

/* ---- results ---- */

static str mean_of(struct window *w, str acc) {
    int64_t terms = 1;
    for (size_t i = 0; i < w->shape.naxes; i++)
        terms *= w->shape.axes[i].size;
    if (w->fold->body->reduce->op != REDUCTION_MEAN)
        return acc;
    return counts(w) ? TEXT(w->sh, "$ / $", acc, slots_get(&w->slots, "count"))
                     : TEXT(w->sh, "$ / $.0f", acc, sheet_number(w->sh, terms));
}

/* The variable of the result that a loop over a thread's results is at. */
static void put_results(struct window *w) {
    struct slots *t = &w->slots;
    struct maps maps;
    size_t v = w->down >= 0 ? axis(w, w->down)->out : w->last;
    name_variables(w);
    if (w->items > 1) {
        slots_put(t, "along", w->k.var[v]);
        slots_put(t, "along_value", w->down >= 0 ? S("first + result") : column_text(w));
        slots_put(t, "along_extent", extent_text(w, v));
    }
    slots_put(t, "value", mean_of(w, slots_get(t, "acc")));
    bool ok = maps_write(&w->k, w->fold, S("value"), t, &maps);
    for (size_t i = 0; ok && i < maps.n; i++) {
        str to = scope_pointer(&w->k, maps.out[i].tensor, true), at = scope_place_text(&w->k);
        bool truth = w->in->task->tensors[maps.out[i].tensor].dtype == DTYPE_BOOL;
        slots_put(slots_row(t, "stores"), "store",
                  TEXT(w->sh, w->hint && !truth ? "__stcs($ + $, $)" : "$[$] = $", to, at,
                       maps.out[i].packed));
    }
}

/* ---- the kernel ---- */

static uint32_t outer_vars(const struct window *w) {
    uint32_t vars = ((UINT32_C(1) << w->fold->nindex) - 1) & ~(UINT32_C(1) << w->last);
    return w->down >= 0 ? vars & ~(UINT32_C(1) << axis(w, w->down)->out) : vars;
}

static str tiles_plan(struct window *w, size_t var, int64_t results) {
    str extent = sheet_plan(w->sh, w->in->task->tensors[w->fold->tensor].extent[var]);
    return results == 1 ? extent
                        : TEXT(w->sh, "ceil_div($, $)", extent, sheet_number(w->sh, results));
}

static int64_t results_across(const struct window *w) {
    return w->down >= 0 ? w->lanes : w->block * w->items;
}
static int64_t results_down(const struct window *w) {
    return w->block / w->lanes * w->items;
}
static str across_plan(struct window *w) {
    return tiles_plan(w, w->last, results_across(w));
}
static str down_plan(struct window *w) {
    return tiles_plan(w, axis(w, w->down)->out, results_down(w));
}

/* Tiles are counted in ints, whatever indices are: a grid has no more. */
static str tiles_int(struct window *w, const char *what, str plan) {
    str n = scope_int_plan(&w->k, what, plan);
    return w->k.wide ? TEXT(w->sh, "(int)$", n) : n;
}

/* Where the block and the thread are, once it is known which coordinates are mentioned. */
static void put_place_of_block(struct window *w) {
    struct slots *t = &w->slots;
    str used = slots_texts(w->sh, t);
    name_variables(w);
    slots_put(t, "tiles_across", tiles_int(w, "tiles_across", across_plan(w)));
    if (w->down >= 0) {
        str row = w->items > 1 ? S("first") : w->k.var[axis(w, w->down)->out];
        slots_put(t, "tiles_down", tiles_int(w, "tiles_down", down_plan(w)));
        slots_put(t, "row", row);
        slots_put(t, "thread_row",
                  w->lanes == w->block ? S("top")
                                       : TEXT(w->sh, "top + $", times(w, S("down"), w->items)));
    }
    slots_put(t, "column", w->k.var[w->last]);
    slots_put(t, "coordinates",
              place_coordinates(&w->k, w->fold, outer_vars(w),
                                w->down >= 0 ? S("outer") : S("tile"), true, used));
}

/* Threads without a result leave, once they have helped to fill the tile. */
static str outside_text(struct window *w) {
    str column = w->k.var[w->last], columns = extent_text(w, w->last);
    if (is_lanewise(w))
        return S("");
    if (w->down < 0)
        return TEXT(w->sh, "$ >= $", column, columns);
    return TEXT(w->sh, "$ >= $ || $ >= $", column, columns, slots_get(&w->slots, "row"),
                extent_text(w, axis(w, w->down)->out));
}

static void launch(struct window *w, const struct window_tile *tile) {
    struct sheet *sh = w->sh;
    str grid = across_plan(w), outer = place_count(sh, w->in, w->fold, outer_vars(w));
    if (w->down >= 0)
        grid = TEXT(sh, "$*$", grid, down_plan(w));
    str shared = w->halo ? TEXT(sh, ", $", sheet_number(sh, tile->bytes)) : S("");
    sheet_step(sh, "launch %.*s<<<%.*s*%.*s, %lld%.*s>>>(%.*s)", STR_ARG(w->k.name), STR_ARG(grid),
               STR_ARG(outer), (long long)w->block, STR_ARG(shared), STR_ARG(scope_args(&w->k)));
}

static void put_constants(struct window *w) {
    static const char *const lists[] = {"weights", "places", "outer_axes", "taps", "stores"};
    struct slots *t = &w->slots;
    slots_init(t, w->sh->mem);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        slots_list(t, lists[i]);
    slots_put(t, "kernel", w->k.name);
    slots_put(t, "index", str_view(scope_index_type(&w->k)));
    slots_put(t, "suffix", w->k.wide ? S("LL") : S(""));
    slots_put(t, "type", str_view(w->type));
    slots_put(t, "identity", w->identity);
    slots_number(t, "block", w->block);
    slots_number(t, "items", w->items);
    slots_number(t, "lanes", w->lanes);
    slots_number(t, "results_across", results_across(w));
    slots_number(t, "results_down", results_down(w));
    slots_flag(t, "halo", w->halo);
    slots_flag(t, "down", w->down >= 0);
    slots_flag(t, "rows_of_threads", w->down >= 0 && w->lanes < w->block);
    slots_flag(t, "several", w->items > 1);
    slots_flag(t, "lanewise", is_lanewise(w));
    slots_flag(t, "slides", slides(w));
    slots_flag(t, "separable", w->separable);
    slots_flag(t, "counts", counts(w));
}

/* Lines indented by the braces around them: how many loops there are is not the template's. */
static str indented(struct sheet *sh, str text) {
    struct buf b;
    str line;
    int depth = 0;
    bool goes_on = false; /* the statement of the line before */
    buf_init(&b, 1u << 20);
    while (str_line(&text, &line)) {
        line = str_trim(line);
        if (line.n == 0)
            continue;
        bool remark = str_starts(line, S("//")), directive = line.p[0] == '#';
        depth -= line.p[0] == '}';
        buf_printf(&b, "%*s%.*s\n", directive ? 0 : 4 * (depth + goes_on), "", STR_ARG(line));
        char last = line.p[line.n - 1];
        depth += last == '{';
        goes_on = remark || directive ? goes_on : last != '{' && last != '}' && last != ';';
    }
    return sheet_keep(sh, &b);
}

static bool write_kernel(struct window *w) {
    struct sheet *sh = w->sh;
    struct window_tile tile = {.bytes = 0};
    str y = w->in->task->tensors[w->fold->tensor].name;
    scope_init(&w->k, sh, w->st, TEXT(sh, "window_$", y).p);
    w->k.statement = w->fold;
    name_variables(w);
    put_constants(w);
    put_weights(w);
    if (w->halo && (!tile_of(w, &tile) || !put_fill(w, &tile)))
        return false;
    put_terms(w, &tile);
    put_results(w);
    put_place_of_block(w);
    slots_put(&w->slots, "outside", outside_text(w));
    slots_put(&w->slots, "params", scope_params(&w->k));
    launch(w, &tile);
    buf_puts(&sh->kernels, indented(sh, sheet_lines(sh, "window/kernel.cu", &w->slots)));
    buf_puts(&sh->kernels, S("\n\n"));
    return !sheet_failed(sh);
}

/* ---- the step ---- */

static void require_fixed(struct window *w) {
    for (size_t i = 0; i < w->in->task->ndims; i++) {
        str name = w->in->task->dims[i].name;
        if (w->shape.fixed >> i & 1)
            sheet_require(w->sh, "%.*s == %lld", STR_ARG(name), (long long)w->in->dims[i]);
    }
    const struct window_tap *tap = &w->shape.taps[0];
    if (w->width > 1) {
        const struct tensor *x = &w->in->task->tensors[tap->read->ref];
        str extent = sheet_plan(w->sh, x->extent[x->rank - 1]);
        sheet_require(w->sh, "%.*s %% %lld == 0", STR_ARG(extent), (long long)w->width);
    }
}

static void put_note(struct window *w) {
    const struct used all[] = {
        {"block", w->block}, {"items", w->items},        {"tile-w", w->lanes},
        {"halo", w->halo},   {"vector-width", w->width}, {"separable", w->separable},
    };
    str name = w->in->task->tensors[w->fold->tensor].name;
    sheet_note(w->sh,
               "window: %.*s: %lld threads a block, %lld along the innermost axis, %lld result%s a "
               "thread%s%s",
               STR_ARG(name), (long long)w->block, (long long)w->lanes, (long long)w->items,
               w->items > 1 ? "s" : "", w->separable ? ", rows folded once" : "",
               w->halo ? ", input in a shared tile" : "");
    sheet_used(w->sh, all, sizeof all / sizeof *all);
}

static bool is_long_line(const struct sheet *sh, const struct window_shape *shape) {
    int64_t size = shape->axes[0].size;
    bool wanted = size >= LINE_LEAST && sheet_decision(sh, "halo", 1) != 0;
    return shape->line && (wanted || size > LINE_ALWAYS);
}

static bool write(struct sheet *sh, const struct step *st) {
    struct window w = {.sh = sh, .st = st, .in = st->inst, .fold = fold_find(st->inst->task)};
    if (!w.fold || !window_match(w.in, w.fold, &w.shape))
        return err_set(sh->err, ERR_INPUT, "a window that is none");
    if (is_long_line(sh, &w.shape))
        return window_write_line(sh, st, w.fold, &w.shape);
    w.last = w.fold->nindex - 1;
    find_axes(&w);
    decide(&w);
    w.type = fold_type(w.fold);
    w.identity = fold_start(w.fold);
    require_fixed(&w);
    put_note(&w);
    if (!w.fold->body->reduce->guard)
        find_weights(&w, w.fold->body->args[0]);
    return write_kernel(&w);
}

/* ---- for planners ---- */

static bool window_facts(const struct briefing *b, const struct step *st, struct step_facts *out) {
    const struct statement *fold = fold_find(st->inst->task);
    struct window_shape shape;
    (void)b;
    if (!fold || !window_match(st->inst, fold, &shape))
        return false;
    out->value[STEP_AXES] = (int64_t)shape.naxes;
    out->value[STEP_LINE] = shape.naxes == 1 && shape.axes[0].out + 1 == fold->nindex;
    out->value[STEP_WEIGHTED] = !shape.separable;
    for (size_t i = 0; i < shape.naxes; i++)
        if (shape.axes[i].stride > 4 && 2 * shape.axes[i].stride > shape.axes[i].size)
            out->value[STEP_APART] = 1;
    return true;
}

const struct family family_window = {.name = "window",
                                     .workload = WORKLOAD_WINDOW,
                                     .facts = window_facts,
                                     .claim = claim,
                                     .write = write};
