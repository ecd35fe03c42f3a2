/* Recognition of windows. */
#include "agent/expert/window/window.h"
#include "spec/domain.h"
#include "spec/pattern.h"

#define SIZE_MOST  64   /* of a window along one axis */
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
        __builtin_popcount(outs) != (int)out->naxes)
        return false;
    out->separable = !r->guard && !(free_uses(out, term) & (reduced_vars(out) | outs));
    out->beside = beside_uses(out, term) | (r->guard ? beside_uses(out, r->guard) : 0);
    order_axes(out);
    return true;
}
