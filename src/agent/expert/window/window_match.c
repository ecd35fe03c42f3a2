/* Recognition of windows. */
#include "agent/expert/window/window.h"
#include "spec/domain.h"
#include "spec/pattern.h"

#define SIZE_MOST  64   /* of a window along one axis, of those that are written out */
#define TERMS_MOST 1024 /* of a window */

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
        if (!expr_is_number(v->lo, 0) || expr_vars(v->hi) || expr_reads(v->hi) ||
            !expr_eval_dims(v->hi, in->dims, &x->size) || x->size < 1 || x->size > WINDOW_LINE)
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
        tap->along[i].index = -1;
    for (size_t k = 0; k < read->nargs; k++) {
        struct window_axis got;
        int64_t offset;
        if (!(expr_vars(read->args[k]) & reduced_vars(shape)))
            continue;
        int i = axis_of(in, s, read->args[k], shape, &got, &offset);
        if (i < 0 || tap->along[i].index >= 0)
            return false;
        struct window_axis *x = &learned.axes[i];
        if (x->stride &&
            (x->out != got.out || x->stride != got.stride || x->dilation != got.dilation))
            return false;
        *x = got;
        tap->along[i] = (struct window_place){(int)k, offset};
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

/* Variables that the expression depends on otherwise than through taps; `reads`: those of reads. */
static uint32_t uses_beside(const struct window_shape *shape, const struct expr *e, bool reads) {
    uint32_t vars = e->kind == (reads ? EXPR_READ : EXPR_INDEX) ? expr_vars(e) : 0;
    for (size_t i = 0; i < shape->ntaps; i++)
        if (expr_same(shape->taps[i].node, e))
            return 0;
    for (size_t i = 0; i < e->nargs; i++)
        vars |= uses_beside(shape, e->args[i], reads);
    return vars;
}

/* The windows of neighbouring results are in one another's input: nothing but the indices along
 * axes moves with the result. Of a band of a matrix, `p[i,i+j]`, each result has a row of its own.
 */
static bool share_input(const struct window_shape *shape, uint32_t outs) {
    for (size_t i = 0; i < shape->ntaps; i++)
        for (size_t k = 0; k < shape->taps[i].read->nargs; k++) {
            bool along = false;
            for (size_t x = 0; x < shape->naxes; x++)
                along |= shape->taps[i].along[x].index == (int)k;
            if (!along && (expr_vars(shape->taps[i].read->args[k]) & outs))
                return false;
        }
    return true;
}

static void order_axes(struct window_shape *shape) {
    for (size_t i = 1; i < shape->naxes; i++)
        for (size_t k = i; k > 0 && shape->axes[k].out < shape->axes[k - 1].out; k--) {
            struct window_axis x = shape->axes[k];
            shape->axes[k] = shape->axes[k - 1];
            shape->axes[k - 1] = x;
            for (size_t t = 0; t < shape->ntaps; t++) {
                struct window_tap *tap = &shape->taps[t];
                struct window_place kept = tap->along[k];
                tap->along[k] = tap->along[k - 1];
                tap->along[k - 1] = kept;
            }
        }
}

bool window_match(const struct inst *in, const struct statement *s, struct window_shape *out) {
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
        __builtin_popcount(outs) != (int)out->naxes || !share_input(out, outs))
        return false;
    out->separable = !r->guard && !(uses_beside(out, term, false) & (reduced_vars(out) | outs));
    out->beside = uses_beside(out, term, true) | (r->guard ? uses_beside(out, r->guard, true) : 0);
    order_axes(out);
    out->line = window_is_line(s, out);
    for (size_t i = 0; i < out->naxes; i++)
        if (out->axes[i].size > SIZE_MOST && !out->line)
            return false;
    return true;
}
