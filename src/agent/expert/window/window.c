/* family_window: what it takes, and what a strategy comes to for it.
 *
 * Decisions by regime, for whoever plans (f32, an H200):
 *   windows of rank 2 and 3 with stride 1 or 2: block 256, tile-w 64 or 128 (the widest that wastes
 *     least of a row), items 8 for stride 1 and 4 for stride 2, separable 1, halo 0
 *   strides over 4 (windows side by side): halo 1, separable 1, vector-width 4, tile-w 128, items 1
 *   rank 1: items 4, block 256; halo 1 with vector-width 4 from 8 taps on
 *   weights, 3x3: items 8, halo 0; 7 taps in a row and more: halo 1, vector-width 4, items 4
 *   cache-hint 0: neighbouring blocks find each other's rows in L2. */
#include "agent/expert/window/window.h"
#include "agent/expert/scan/scan_kind.h"
#include "spec/domain.h"
#include "spec/pattern.h"
#include <string.h>

#define SIZE_MOST    64   /* of a window along one axis */
#define TERMS_MOST   1024 /* of a window */
#define UNROLL_MOST  768  /* terms written out for one thread */
#define WEIGHTS_MOST 64   /* registers for them */
#define TILE_MOST    (96 << 10)

/* ---- recognition ---- */

static void dims_of(const struct expr *e, uint64_t *dims) {
    if (e->kind == EXPR_DIM)
        *dims |= UINT64_C(1) << e->ref;
    for (size_t i = 0; i < e->nargs; i++)
        dims_of(e->args[i], dims);
}

/* Every reduced variable runs over a small number of places from 0 on. */
static bool has_ranges(const struct inst *in, const struct reduce *r, struct window_shape *out) {
    int64_t terms = 1;
    if (r->nvars == 0 || r->nvars > WINDOW_AXES)
        return false;
    for (size_t i = 0; i < r->nvars; i++) {
        struct window_axis *x = &out->axes[i];
        const struct reduce_var *v = &r->vars[i];
        *x = (struct window_axis){.reduced = v->var};
        if (!expr_is_number(v->lo, 0) || expr_uses(v->hi) || expr_reads(v->hi) ||
            !expr_eval_dims(v->hi, in->dims, &x->size) || x->size < 1 || x->size > SIZE_MOST)
            return false;
        dims_of(v->hi, &out->fixed);
        terms *= x->size;
    }
    out->naxes = r->nvars;
    return terms <= TERMS_MOST;
}

/* The axis whose variables the index is made of: stride·out + dilation·reduced + offset. */
static int axis_of(const struct inst *in, const struct statement *s, const struct expr *index,
                   const struct window_shape *shape, struct window_axis *got, int64_t *offset) {
    struct affine f;
    uint64_t dims = 0;
    dims_of(index, &dims);
    if (expr_reads(index) || !affine_of(in, index, &f) || (dims & ~shape->fixed) ||
        __builtin_popcount(f.vars) != 2)
        return -1;
    for (size_t i = 0; i < shape->naxes; i++) {
        uint32_t reduced = UINT32_C(1) << shape->axes[i].reduced;
        size_t out = (size_t)__builtin_ctz(f.vars & ~reduced);
        if (!(f.vars & reduced) || out >= s->nindex)
            continue;
        *got = shape->axes[i];
        got->out = out;
        got->stride = f.coef[out];
        got->dilation = f.coef[shape->axes[i].reduced];
        *offset = f.c;
        return got->stride > 0 && got->dilation > 0 ? (int)i : -1;
    }
    return -1;
}

static uint32_t reduced_vars(const struct window_shape *shape) {
    uint32_t vars = 0;
    for (size_t i = 0; i < shape->naxes; i++)
        vars |= UINT32_C(1) << shape->axes[i].reduced;
    return vars;
}

/* A read whose indices with reduced variables all belong to axes, in the way that is known of them;
 * what is new about an axis is learned. */
static bool read_tap(const struct inst *in, const struct statement *s, const struct expr *read,
                     struct window_shape *shape, struct window_tap *tap) {
    struct window_shape learned = *shape;
    bool any = false;
    for (size_t i = 0; i < WINDOW_AXES; i++)
        tap->position[i] = -1;
    for (size_t k = 0; k < read->nargs; k++) {
        struct window_axis got;
        int64_t offset;
        if (!(expr_uses(read->args[k]) & reduced_vars(shape)))
            continue;
        int i = axis_of(in, s, read->args[k], shape, &got, &offset);
        if (i < 0 || tap->position[i] >= 0)
            return false;
        struct window_axis *x = &learned.axes[i];
        if (x->stride &&
            (x->out != got.out || x->stride != got.stride || x->dilation != got.dilation))
            return false;
        *x = got;
        tap->position[i] = (int)k;
        tap->offset[i] = offset;
        any = true;
    }
    if (any)
        *shape = learned;
    return any;
}

/* Taps of the term. A read under a condition, or in a fold with a guard, may be outside. */
static void find_taps(const struct inst *in, const struct statement *s, const struct expr *e,
                      bool sure, struct window_shape *shape) {
    const struct expr *read = e->kind == EXPR_PAD ? e->args[0] : e;
    struct window_tap tap = {.node = e, .read = read, .sure = sure && e->kind != EXPR_PAD};
    for (size_t i = 0; i < shape->ntaps; i++)
        if (expr_same(shape->taps[i].node, e))
            return;
    if (read->kind == EXPR_READ && shape->ntaps < WINDOW_TAPS &&
        in->task->tensors[read->ref].role != TENSOR_INOUT && read_tap(in, s, read, shape, &tap)) {
        shape->taps[shape->ntaps++] = tap;
        return;
    }
    for (size_t i = 0; i < e->nargs; i++)
        find_taps(in, s, e->args[i], sure && e->kind != EXPR_IF, shape);
}

/* Variables that the expression depends on otherwise than through taps. */
static uint32_t free_uses(const struct window_shape *shape, const struct expr *e) {
    uint32_t vars = e->kind == EXPR_INDEX ? UINT32_C(1) << e->ref : 0;
    for (size_t i = 0; i < shape->ntaps; i++)
        if (expr_same(shape->taps[i].node, e))
            return 0;
    for (size_t i = 0; i < e->nargs; i++)
        vars |= free_uses(shape, e->args[i]);
    return vars;
}

/* Index variables of reads that are no taps. */
static uint32_t beside_uses(const struct window_shape *shape, const struct expr *e) {
    uint32_t vars = e->kind == EXPR_READ ? expr_uses(e) : 0;
    for (size_t i = 0; i < shape->ntaps; i++)
        if (expr_same(shape->taps[i].node, e))
            return 0;
    for (size_t i = 0; i < e->nargs; i++)
        vars |= beside_uses(shape, e->args[i]);
    return vars;
}

static void order_axes(struct window_shape *shape) {
    for (size_t i = 1; i < shape->naxes; i++)
        for (size_t k = i; k > 0 && shape->axes[k].out < shape->axes[k - 1].out; k--) {
            struct window_axis x = shape->axes[k];
            shape->axes[k] = shape->axes[k - 1];
            shape->axes[k - 1] = x;
            for (size_t t = 0; t < shape->ntaps; t++) {
                struct window_tap *tap = &shape->taps[t];
                int position = tap->position[k];
                int64_t offset = tap->offset[k];
                tap->position[k] = tap->position[k - 1];
                tap->offset[k] = tap->offset[k - 1];
                tap->position[k - 1] = position;
                tap->offset[k - 1] = offset;
            }
        }
}

bool window_recognise(const struct inst *in, const struct statement *s, struct window_shape *out) {
    const struct reduce *r = s->body->reduce;
    *out = (struct window_shape){.naxes = 0};
    if (!form_is_fold(s) || r->op >= REDUCTION_ARGMAX || !maps_plain_left(in->task, s) ||
        s->nvars + 2 > TASK_MAX_VARS || s->body->value_kind == VALUE_BOOL ||
        (r->guard && expr_has(r->guard, EXPR_REDUCE)) || !has_ranges(in, r, out))
        return false;
    const struct expr *term = s->body->args[0];
    find_taps(in, s, term, !r->guard, out);
    uint32_t all = 0, outs = 0;
    for (size_t i = 0; i < out->naxes; i++) {
        all |= out->axes[i].stride ? UINT32_C(1) << i : 0;
        outs |= UINT32_C(1) << out->axes[i].out;
    }
    if (out->ntaps == 0 || all != (UINT32_C(1) << out->naxes) - 1 ||
        __builtin_popcount(outs) != (int)out->naxes)
        return false;
    out->separable = !r->guard && !(free_uses(out, term) & (reduced_vars(out) | outs));
    out->beside = beside_uses(out, term) | (r->guard ? beside_uses(out, r->guard) : 0);
    order_axes(out);
    return true;
}

static bool claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                  bool *take) {
    struct window_shape shape;
    const struct statement *s = &f->task->statements[first];
    (void)b;
    if (s->body->kind != EXPR_REDUCE || !window_recognise(f->inst, s, &shape))
        return false;
    maps_claim(f, done, first, take);
    return true;
}

/* ---- decisions ---- */

int64_t window_reach(const struct window_axis *x, int64_t results) {
    return (results - 1) * x->stride + (x->size - 1) * x->dilation + 1;
}

bool window_slides(const struct window *w) {
    return w->down >= 0 && w->items > 1;
}

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
        n *= (int)i == w->down && w->items > 1 ? window_reach(&w->shape.axes[i], w->items)
                                               : w->shape.axes[i].size;
    return n;
}

#define SIDES 8 /* columns that a tile costs beside those it needs, in whole vectors */

/* The power of two along the lanes with which the tiles of a row read the fewest columns. */
static int64_t choose_lanes(const struct window *w, int64_t most) {
    int64_t extent = w->in->tensors[w->fold->tensor].extent[w->last], best = 8, least = INT64_MAX;
    for (int64_t n = 8; n <= most; n *= 2) {
        int64_t tiles = (extent + n - 1) / n;
        int64_t columns = w->across < 0 ? n : window_reach(&w->shape.axes[w->across], n) + SIDES;
        if (tiles * columns <= least) {
            least = tiles * columns;
            best = n;
        }
    }
    return best;
}

static bool uniform_pad(const struct window *w) {
    const struct expr *node = w->shape.taps[0].node;
    return node->kind != EXPR_PAD || (expr_uses(node->args[1]) == 0 && !expr_reads(node->args[1]));
}

/* Vectors into the tile: rows of the input begin aligned, and so do the tile's. */
static int64_t tile_width(const struct window *w, int64_t want) {
    const struct window_tap *tap = &w->shape.taps[0];
    size_t k = tap->read->nargs - 1;
    bool along = w->across >= 0 && tap->position[w->across] == (int)k;
    bool bare = tap->read->args[k]->kind == EXPR_INDEX && tap->read->args[k]->ref == w->last;
    int64_t stride = along ? w->shape.axes[w->across].stride : 1;
    int64_t bytes = (int64_t)dtype_info(w->in->task->tensors[tap->read->ref].dtype)->bytes;
    int64_t extents[] = {w->in->tensors[tap->read->ref].extent[k], w->lanes * stride, 16 / bytes};
    return along || bare ? pieces_width(want, extents, 3) : 1;
}

/* A tile that does not fit becomes smaller. */
static void decide_halo(struct window *w) {
    struct window_tile tile;
    w->width = 1;
    w->halo = w->shape.ntaps == 1 && uniform_pad(w) && sheet_decision(w->sh, "halo", 1) != 0 &&
              window_tile_of(w, &tile);
    if (!w->halo)
        return;
    int64_t width = sheet_decision(w->sh, "vector-width", 4);
    w->width = tile_width(w, width);
    while (window_tile_of(w, &tile) && tile.bytes > TILE_MOST && w->block > 32) {
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
    w->separable = w->shape.separable && window_slides(w) &&
                   w->fold->body->reduce->op != REDUCTION_PROD &&
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
    uint32_t uses = expr_uses(e), own = UINT32_C(1) << w->last;
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
        w->weights[w->nweights++].name =
            sheet_name(w->sh, sheet_printf(w->sh, "%.*s_kept", STR_ARG(x)));
        return;
    }
    for (size_t i = 0; i < e->nargs; i++)
        find_weights(w, e->args[i]);
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

static const char *const local_names[] = {
    "acc",  "lane",  "down",  "tile",  "corner", "top", "outer", "first",  "u",    "o",
    "line", "reach", "value", "count", "slab",   "i",   "row",   "column", "word", "here",
};

static bool write(struct sheet *sh, const struct step *st) {
    struct window w = {.sh = sh, .st = st, .in = st->inst, .fold = fold_find(st->inst->task)};
    if (!w.fold || !window_recognise(w.in, w.fold, &w.shape))
        return err_set(sh->err, ERR_INPUT, "a window that is none");
    w.last = w.fold->nindex - 1;
    find_axes(&w);
    decide(&w);
    w.type = fold_type(w.fold);
    w.identity = fold_start(w.fold);
    require_fixed(&w);
    put_note(&w);
    slots_names(sh, &w.names, local_names, sizeof local_names / sizeof *local_names);
    if (!w.fold->body->reduce->guard)
        find_weights(&w, w.fold->body->args[0]);
    return window_write_kernel(&w);
}

/* ---- for planners ---- */

enum window_kind window_kind_of(const struct briefing *b, const struct step *st) {
    const struct statement *fold = fold_find(st->inst->task);
    struct window_shape shape;
    (void)b;
    if (!fold || !window_recognise(st->inst, fold, &shape))
        return WINDOW_NONE;
    if (shape.naxes == 1 && shape.axes[0].out + 1 == fold->nindex)
        return WINDOW_LINE;
    for (size_t i = 0; i < shape.naxes; i++)
        if (shape.axes[i].stride > 4 && 2 * shape.axes[i].stride > shape.axes[i].size)
            return WINDOW_APART;
    return !shape.separable ? WINDOW_WEIGHTED : shape.naxes > 2 ? WINDOW_SLABS : WINDOW_POOL;
}

const struct family family_window = {
    .name = "window", .workload = WORKLOAD_WINDOW, .claim = claim, .write = write};
