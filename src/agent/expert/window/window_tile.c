/* The tile of a window in shared memory: all input that the results of a block need, loaded once
 * and in order, with what lies beyond the input's edges filled in. Its places are those of the
 * window's axes, the innermost last; rows are whole vectors. */
#include "agent/expert/window/window.h"

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
        if (tap->position[i] < 0)
            return false;
    if (w->across >= 0)
        return tap->position[w->across] == (int)k;
    return tap->read->args[k]->kind == EXPR_INDEX && tap->read->args[k]->ref == w->last;
}

bool window_tile_of(const struct window *w, struct window_tile *out) {
    int64_t along = w->down >= 0 ? w->lanes : w->block * w->items, rows = 1;
    *out = (struct window_tile){.shift = 0};
    if (!fits(w))
        return false;
    for (int i = 0; i < (int)w->shape.naxes; i++) {
        const struct window_axis *x = &w->shape.axes[i];
        out->depth[i] = i == w->down     ? window_reach(x, w->block / w->lanes * w->items)
                        : i == w->across ? 1
                                         : x->size;
        rows *= out->depth[i];
    }
    out->columns = along;
    if (w->across >= 0) {
        int64_t offset = the_tap(w)->offset[w->across];
        out->shift = (offset % w->width + w->width) % w->width;
        out->columns = window_reach(&w->shape.axes[w->across], along) + out->shift;
    }
    out->columns = round_up(out->columns, w->width);
    out->bytes = rows * out->columns * (int64_t)dtype_info(element(w))->bytes;
    return true;
}

/* ---- filling ---- */

static str name(const struct window *w, const char *slot) {
    return slots_get(&w->names, slot);
}

/* "+ 3", "- 3", or nothing. */
static str plus(struct window *w, int64_t v) {
    return v == 0 ? S("")
                  : sheet_printf(w->sh, v < 0 ? " - %lld" : " + %lld", (long long)(v < 0 ? -v : v));
}

static str times(struct window *w, str what, int64_t v) {
    return v == 1 ? what : sheet_printf(w->sh, "%.*s * %lld", STR_ARG(what), (long long)v);
}

/* Places along an axis are counted out of the flat number of a vector, the innermost first. */
struct digits {
    str flat;
    int64_t below;
};

static str digit(struct window *w, struct digits *d, int64_t n, bool last) {
    str text = d->flat;
    if (d->below > 1)
        text = sheet_printf(w->sh, "%.*s / %lld", STR_ARG(text), (long long)d->below);
    if (!last)
        text = sheet_printf(w->sh, "%.*s %% %lld", STR_ARG(text), (long long)n);
    d->below *= n;
    return text;
}

/* Declarations of row, column and the places along the other axes. */
static str indices_text(struct window *w, const struct window_tile *t, struct expr **index) {
    struct sheet *sh = w->sh;
    const struct window_tap *tap = the_tap(w);
    const char *type = scope_index_type(&w->k);
    struct digits d = {name(w, "i"), 1};
    str row = name(w, "row"), column = name(w, "column"), corner = name(w, "corner");
    size_t k = tap->read->nargs - 1;
    int64_t vectors = t->columns / w->width, others = 0;
    for (int i = 0; i < (int)w->shape.naxes; i++)
        others += i != w->across && i != w->down;
    str place = digit(w, &d, vectors, w->down < 0 && others == 0);
    str lines = times(w, place, w->width);
    int64_t stride = w->across >= 0 ? w->shape.axes[w->across].stride : 1;
    int64_t offset = w->across >= 0 ? tap->offset[w->across] - t->shift : 0;
    str at = times(w, corner, stride), by = plus(w, offset);
    lines = sheet_printf(sh, "const %s %.*s = %.*s%.*s + %.*s;", type, STR_ARG(column), STR_ARG(at),
                         STR_ARG(by), STR_ARG(lines));
    w->k.var[w->fold->nvars + 1] = column;
    index[k] = window_variable(sh, w->fold->nvars + 1);
    if (w->down >= 0) {
        const struct window_axis *x = &w->shape.axes[w->down];
        place = digit(w, &d, t->depth[w->down], others == 0);
        at = times(w, name(w, "top"), x->stride);
        by = plus(w, tap->offset[w->down]);
        lines = sheet_printf(sh, "%.*s\nconst %s %.*s = %.*s%.*s + %.*s;", STR_ARG(lines), type,
                             STR_ARG(row), STR_ARG(at), STR_ARG(by), STR_ARG(place));
        w->k.var[w->fold->nvars] = row;
        index[tap->position[w->down]] = window_variable(sh, w->fold->nvars);
    }
    for (int i = (int)w->shape.naxes; i-- > 0;) {
        if (i == w->across || i == w->down)
            continue;
        place = digit(w, &d, t->depth[i], --others == 0);
        lines = sheet_printf(sh, "%.*s\nconst int %.*s = %.*s;", STR_ARG(lines),
                             STR_ARG(w->k.var[w->shape.axes[i].reduced]), STR_ARG(place));
    }
    return lines;
}

static str pad_value(struct window *w, str *said) {
    const struct window_tap *tap = the_tap(w);
    bool pads = tap->node->kind == EXPR_PAD;
    str value = pads ? scope_text(&w->k, tap->node->args[1]) : S("0");
    *said = value;
    return scope_packed(&w->k, tap->read->ref, tap->read->value_kind, value);
}

static str copy_text(struct window *w, str from, str *wait) {
    int64_t bytes = w->width * (int64_t)dtype_info(element(w))->bytes;
    str here = name(w, "here");
    struct slots none = {.mem = w->sh->mem};
    *wait = S("");
    if (bytes < 4 && w->width == 1)
        return sheet_printf(w->sh, "*%.*s = *(%.*s);", STR_ARG(here), STR_ARG(from));
    if (bytes < 4) /* cp.async copies 4 bytes at the least */
        return sheet_printf(w->sh,
                            "*reinterpret_cast<unsigned short *>(%.*s) =\n"
                            "    *reinterpret_cast<const unsigned short *>(%.*s);",
                            STR_ARG(here), STR_ARG(from));
    if (str_find(buf_str(&w->sh->functions), S("cp_copy_async")) == w->sh->functions.n)
        sheet_put(w->sh, "window/copy.cu", &none, &w->sh->functions);
    *wait = S("asm volatile(\"cp.async.wait_all;\" ::: \"memory\");");
    return sheet_printf(w->sh, "cp_copy_async<%lld>(%.*s, %.*s);", (long long)bytes, STR_ARG(here),
                        STR_ARG(from));
}

str window_tile_fill(struct window *w, const struct window_tile *t) {
    struct sheet *sh = w->sh;
    struct expr *index[TASK_MAX_RANK] = {NULL};
    struct slots s = w->names;
    struct buf b;
    str wait, said, here = name(w, "here"), e = name(w, "word");
    int64_t rows = 1;
    for (size_t i = 0; i < w->shape.naxes; i++)
        rows *= t->depth[i];
    slots_put(&s, "indices", indices_text(w, t, index));
    struct expr *read = window_read_at(sh, the_tap(w)->read, index);
    buf_init(&b, 64u << 10);
    buf_puts(&b, scope_pointer(&w->k, read->ref, false));
    buf_puts(&b, S(" + "));
    scope_offset(&w->k, read, &b);
    str from = sheet_keep(sh, &b);
    buf_release(&b);
    str pad = pad_value(w, &said);
    slots_put(&s, "padding", said);
    slots_put(&s, "inside", window_inside(w, the_tap(w), read, index));
    slots_put(&s, "copy", copy_text(w, from, &wait));
    slots_put(&s, "wait", wait);
    slots_put(&s, "element_type", str_view(dtype_info(element(w))->cuda));
    slots_number(&s, "vectors", rows * t->columns / w->width);
    slots_number(&s, "block", w->block);
    slots_number(&s, "width", w->width);
    slots_put(&s, "pad",
              w->width == 1
                  ? sheet_printf(sh, "*%.*s = %.*s;", STR_ARG(here), STR_ARG(pad))
                  : sheet_printf(sh,
                                 "#pragma unroll\nfor (int %.*s = 0; %.*s < %lld; %.*s++)\n"
                                 "    %.*s[%.*s] = %.*s;",
                                 STR_ARG(e), STR_ARG(e), (long long)w->width, STR_ARG(e),
                                 STR_ARG(here), STR_ARG(e), STR_ARG(pad)));
    return sheet_lines(sh, "window/fill.cu", &s);
}

/* ---- reading ---- */

/* The place along an axis of the tap that the loops are at. */
static str axis_place(struct window *w, int i) {
    struct sheet *sh = w->sh;
    const struct window_axis *x = &w->shape.axes[i];
    str reduced = w->k.var[x->reduced], down = name(w, "down");
    if (i != w->down)
        return reduced;
    str tap = window_slides(w) ? name(w, "u") : times(w, reduced, x->dilation);
    if (w->lanes == w->block)
        return tap;
    str at = times(w, down, x->stride * w->items);
    return sheet_printf(sh, "%.*s + %.*s", STR_ARG(at), STR_ARG(tap));
}

static str column_place(struct window *w, const struct window_tile *t) {
    struct sheet *sh = w->sh;
    str lane = name(w, "lane"), o = name(w, "o");
    str at = w->down >= 0 || w->items == 1 ? lane
                                           : sheet_printf(sh, "(%.*s * %lld + %.*s)", STR_ARG(o),
                                                          (long long)w->block, STR_ARG(lane));
    if (w->across < 0)
        return at;
    const struct window_axis *x = &w->shape.axes[w->across];
    str tap = times(w, w->k.var[x->reduced], x->dilation), shift = plus(w, t->shift);
    at = times(w, at, x->stride);
    return sheet_printf(sh, "%.*s + %.*s%.*s", STR_ARG(at), STR_ARG(tap), STR_ARG(shift));
}

/* at * n + place */
static str nest(struct window *w, str at, int64_t n, str place) {
    bool bare = str_find(at, S(" ")) == at.n;
    return at.n == 0 ? place
                     : sheet_printf(w->sh, bare ? "%.*s * %lld + %.*s" : "(%.*s) * %lld + %.*s",
                                    STR_ARG(at), (long long)n, STR_ARG(place));
}

str window_tile_tap(struct window *w, const struct window_tile *t) {
    str at = S(""), slab = name(w, "slab");
    for (int i = 0; i < (int)w->shape.naxes; i++)
        if (i != w->across && i != w->down)
            at = nest(w, at, t->depth[i], axis_place(w, i));
    if (w->down >= 0)
        at = nest(w, at, t->depth[w->down], axis_place(w, w->down));
    at = nest(w, at, t->columns, column_place(w, t));
    str element_at = sheet_printf(w->sh, "%.*s[%.*s]", STR_ARG(slab), STR_ARG(at));
    return scope_unpacked(&w->k, the_tap(w)->read->ref, element_at);
}
