/* What a part of an output needs, and its data. */
#include "spec/part.h"

#include "base/checked.h"
#include "base/parallel.h"
#include "spec/evaluate.h"
#include "spec/scalar.h"
#include <math.h>

struct needs {
    const struct inst *in;
    struct windows w;
};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The elements of a dimension that an index can name; what lies outside is padding, or is read
 * where the result is never used. */
static struct range index_range(const struct ranges *r, const struct expr *e, int64_t extent) {
    struct range v;
    if (range_of(r, e, &v) != RANGE_OK)
        return (struct range){0, extent - 1};
    return (struct range){most(v.lo, 0), least(v.hi, extent - 1)};
}

/* The window grows to the hull of what it holds and this box. */
static void widen(struct window *w, const struct range *box, size_t rank) {
    bool some = w->count > 0;
    for (size_t k = 0; k < rank; k++) {
        int64_t lo = some ? least(w->lo[k], box[k].lo) : box[k].lo;
        int64_t hi = some ? most(w->lo[k] + w->n[k] - 1, box[k].hi) : box[k].hi;
        w->lo[k] = lo;
        w->n[k] = hi - lo + 1;
    }
    w->count = 1; /* until it is closed: there is something */
}

static void need(struct needs *n, const struct ranges *r, const struct expr *e);

static void need_parts(struct needs *n, const struct ranges *r, const struct expr *e) {
    for (size_t k = 0; k < e->nargs; k++)
        need(n, r, e->args[k]);
}

static void need_read(struct needs *n, const struct ranges *r, const struct expr *e) {
    struct range box[TASK_MAX_RANK];
    bool some = true;
    for (size_t k = 0; k < e->nargs; k++) {
        box[k] = index_range(r, e->args[k], n->in->tensors[e->ref].extent[k]);
        some = some && box[k].lo <= box[k].hi;
    }
    if (some)
        widen(&n->w.read[e->ref], box, e->nargs);
    need_parts(n, r, e);
}

static void need_if(struct needs *n, const struct ranges *r, const struct expr *e) {
    need(n, r, e->args[0]);
    for (size_t side = 1; side <= 2; side++) {
        struct ranges taken = *r;
        if (ranges_narrow(&taken, e->args[0], side == 1))
            need(n, &taken, e->args[side]);
    }
}

/* The guard is evaluated for all terms. */
static void need_reduce(struct needs *n, const struct ranges *r, const struct expr *e) {
    struct ranges inside = *r;
    for (size_t k = 0; k < e->reduce->nvars; k++) {
        bool some;
        if (ranges_enter_var(&inside, &e->reduce->vars[k], &some) != RANGE_OK || !some)
            return;
    }
    if (e->reduce->guard)
        need(n, &inside, e->reduce->guard);
    if (!e->reduce->guard || ranges_narrow(&inside, e->reduce->guard, true))
        need(n, &inside, e->args[0]);
}

/* As deep as the tree, TASK_MAX_DEPTH at the most. */
static void need(struct needs *n, const struct ranges *r, const struct expr *e) {
    switch (e->kind) {
    case EXPR_READ:
        need_read(n, r, e);
        return;
    case EXPR_IF:
        need_if(n, r, e);
        return;
    case EXPR_REDUCE:
        need_reduce(n, r, e);
        return;
    default:
        need_parts(n, r, e);
    }
}

/* Its elements come from a tree walk: it is defined by a statement, or something is assumed. */
static bool is_walked(const struct inst *in, size_t tensor) {
    bool walked = in->task->tensors[tensor].dist.kind == DIST_DEFINED;
    for (size_t i = 0; i < in->task->nassumptions; i++)
        walked = walked || in->task->assumptions[i].tensor == tensor;
    return walked;
}

/* To start making elements takes as long as making so many. */
enum { RUN_COST = 256 };

/* A box whose rows are nearly whole is made whole: fewer runs of consecutive elements. */
static void round_up(const struct inst *in, size_t tensor, struct window *w) {
    const struct bound_tensor *t = &in->tensors[tensor];
    for (size_t k = in->task->tensors[tensor].rank; k-- > 1;) {
        if ((t->extent[k] - w->n[k]) * t->stride[k] > RUN_COST)
            return;
        w->lo[k] = 0;
        w->n[k] = t->extent[k];
    }
}

static bool close_windows(struct needs *n) {
    const struct task *t = n->in->task;
    for (size_t i = 0; i < t->ntensors; i++) {
        struct window *both[2] = {&n->w.read[i], &n->w.made[i]};
        if (both[0]->count > 0 && tensor_is_input(&t->tensors[i]) && !is_walked(n->in, i))
            round_up(n->in, i, both[0]);
        for (int k = 0; k < 2; k++)
            if (both[k]->count > 0 && !window_close(both[k], t->tensors[i].rank))
                return false;
    }
    return true;
}

/* From the last statement to the first, so that all that read a let come before those that make
 * it. False: more elements than can be counted. */
static bool needs_of(const struct inst *in, const struct part *p, struct needs *n) {
    const struct task *t = in->task;
    struct range box[TASK_MAX_RANK];
    *n = (struct needs){.in = in};
    BUG_IF(!tensor_is_output(&t->tensors[p->tensor]));
    for (size_t k = 0; k < t->tensors[p->tensor].rank; k++) {
        BUG_IF(p->lo[k] < 0 || p->n[k] < 1 ||
               p->n[k] > in->tensors[p->tensor].extent[k] - p->lo[k]);
        box[k] = (struct range){p->lo[k], p->lo[k] + p->n[k] - 1};
    }
    widen(&n->w.made[p->tensor], box, t->tensors[p->tensor].rank);
    for (size_t i = t->nstatements; i-- > 0;) {
        const struct statement *s = &t->statements[i];
        struct ranges r;
        if (t->tensors[s->tensor].role == TENSOR_LET)
            n->w.made[s->tensor] = n->w.read[s->tensor];
        if (window_ranges(in, s, &n->w.made[s->tensor], &r))
            need(n, &r, s->body);
    }
    return close_windows(n);
}

/* Consecutive elements of a tensor that a window holds: of dimension `inner` some, of all further
 * ones everything. The dimensions before it tell one such run from another. */
struct runs {
    size_t inner;
    int64_t length, count;
};

static struct runs runs_of(const struct inst *in, size_t tensor, const struct window *w) {
    size_t rank = in->task->tensors[tensor].rank;
    struct runs r = {.inner = rank, .length = 1};
    for (bool all = true; all && r.inner > 0;) {
        r.inner--;
        r.length *= w->n[r.inner];
        all = w->n[r.inner] == in->tensors[tensor].extent[r.inner];
    }
    r.count = w->count / r.length;
    return r;
}

/* What a tree walk costs for each element, and for each run of them: reductions that do not depend
 * on the last index are remembered along a row. */
struct walk {
    const struct inst *in;
    uint32_t along;
    double row, element;
};

static void walk_tensor(struct walk *w, size_t tensor);

static void walk_expr(struct walk *w, const struct ranges *r, const struct expr *e, double times,
                      bool shared) {
    enum { NODE_COST = 8 };
    struct ranges inside = *r;
    *(shared ? &w->row : &w->element) += NODE_COST * times;
    if (e->kind == EXPR_REDUCE) {
        shared = shared || !(expr_vars(e) & w->along);
        if (!ranges_enter(&inside, e->reduce))
            return;
        for (size_t k = 0; k < e->reduce->nvars; k++) {
            struct range v = inside.index[e->reduce->vars[k].var];
            times *= (double)v.hi - (double)v.lo + 1;
        }
    }
    if (e->kind == EXPR_READ) {
        struct walk other = {.in = w->in};
        walk_tensor(&other, e->ref);
        *(shared ? &w->row : &w->element) += times * (other.row + other.element);
    }
    for (size_t k = 0; k < e->nargs; k++)
        walk_expr(w, &inside, e->args[k], times, shared);
}

/* Definitions read what is defined before them: this ends. */
static void walk_tensor(struct walk *w, size_t tensor) {
    const struct task *t = w->in->task;
    size_t rank = t->tensors[tensor].rank;
    for (size_t i = 0; i < t->ndefinitions + t->nassumptions; i++) {
        const struct assumption *a =
            i < t->ndefinitions ? NULL : &t->assumptions[i - t->ndefinitions];
        const struct statement *s = a ? &a->s : &t->definitions[i];
        if ((a ? a->tensor : s->tensor) != tensor || !s->body)
            continue;
        int last = rank ? s->position[rank - 1] : -1;
        struct ranges r = ranges_of(w->in, s);
        w->along = last < 0 ? 0 : UINT32_C(1) << last;
        walk_expr(w, &r, s->body, 1, false);
    }
}

static double input_cost(const struct inst *in, size_t tensor, const struct window *w) {
    enum { WALKED_COST = 32 };
    struct walk walk = {.in = in};
    double each = is_walked(in, tensor) ? WALKED_COST : 1;
    walk_tensor(&walk, tensor);
    return (double)w->count * (each + walk.element) +
           (double)runs_of(in, tensor, w).count * (RUN_COST + walk.row);
}

double part_cost(const struct inst *in, const struct part *p) {
    struct needs *n = mem_alloc(sizeof *n);
    bool counted = needs_of(in, p, n);
    double cost = counted ? evaluate_cost(in, &n->w) : INFINITY;
    for (size_t i = 0; i < in->task->ntensors && counted; i++)
        if (tensor_is_input(&in->task->tensors[i]) && n->w.read[i].count > 0)
            cost += input_cost(in, i, &n->w.read[i]);
    mem_free(n);
    return cost <= 0x1p53 ? cost : INFINITY;
}

/* An input being made. */
struct filling {
    const struct inst *in;
    const struct data_scale *scale;
    enum data_kind kind;
    uint64_t seed;
    size_t tensor;
    const struct window *w;
    struct runs runs;
    char *dst;
};

/* The linear index of element i of a box in the whole tensor. */
static int64_t whole_index(const struct inst *in, size_t tensor, const int64_t *lo,
                           const int64_t *n, int64_t i) {
    int64_t at = 0;
    for (size_t k = in->task->tensors[tensor].rank; k-- > 0; i /= n[k])
        at += (lo[k] + i % n[k]) * in->tensors[tensor].stride[k];
    return at;
}

/* Runs are made in pieces, so that a long one, too, has work for several threads. */
enum { PIECE = 1 << 14 };

static int64_t pieces_of(const struct runs *r) {
    return r->length / PIECE + (r->length % PIECE > 0);
}

static void fill_pieces(void *ctx, unsigned part, int64_t first, int64_t last) {
    const struct filling *f = ctx;
    size_t size = dtype_info(f->in->task->tensors[f->tensor].dtype)->bytes;
    int64_t pieces = pieces_of(&f->runs);
    (void)part;
    for (int64_t i = first; i < last; i++) {
        int64_t run = i / pieces * f->runs.length, skip = i % pieces * PIECE;
        int64_t from = whole_index(f->in, f->tensor, f->w->lo, f->w->n, run) + skip;
        data_fill(f->in, f->scale, f->tensor, f->kind, f->seed, from,
                  least(PIECE, f->runs.length - skip), f->dst + (size_t)(run + skip) * size);
    }
}

/* inputs[i] of every input that is read; heap memory. */
static bool make_inputs(struct filling *f, const struct windows *w, unsigned threads, void **inputs,
                        struct err *err) {
    const struct task *t = f->in->task;
    for (size_t i = 0; i < t->ntensors; i++) {
        size_t bytes;
        f->w = &w->read[i];
        if (!tensor_is_input(&t->tensors[i]) || f->w->count == 0)
            continue;
        if (mul_size((size_t)f->w->count, dtype_info(t->tensors[i].dtype)->bytes, &bytes))
            inputs[i] = mem_try_resize(NULL, bytes);
        if (!inputs[i])
            return err_set(err, ERR_ENV, "no memory for %lld elements of '%.*s'",
                           (long long)f->w->count, STR_ARG(t->tensors[i].name));
        f->tensor = i;
        f->dst = inputs[i];
        f->runs = runs_of(f->in, i, f->w);
        parallel_for(threads, f->runs.count * pieces_of(&f->runs), fill_pieces, f);
    }
    return true;
}

bool part_reference(const struct inst *in, const struct data_scale *scale, enum data_kind kind,
                    uint64_t seed, const struct part *p, unsigned threads, struct reference *out,
                    struct err *err) {
    struct filling f = {.in = in, .scale = scale, .kind = kind, .seed = seed};
    struct needs *n = mem_alloc(sizeof *n);
    void *inputs[TASK_MAX_TENSORS] = {0};
    *out = (struct reference){.tensor = p->tensor};
    bool ok =
        needs_of(in, p, n) ||
        err_set(err, ERR_INPUT, "a part of an output needs more elements than can be counted");
    ok = ok && make_inputs(&f, &n->w, threads, inputs, err) &&
         evaluate_part(in, &n->w, (const void *const *)inputs, p->tensor, threads, out, err);
    for (size_t i = 0; i < in->task->ntensors; i++)
        mem_free(inputs[i]);
    mem_free(n);
    return ok;
}

void part_release(struct reference *ref) {
    mem_free(ref->value);
    mem_free(ref->estimate);
    mem_free(ref->ties);
    *ref = (struct reference){0};
}

void part_compare(const struct inst *in, const struct part *p, const struct reference *ref,
                  const void *got, struct comparison *out) {
    reference_compare(in, ref, got, 1, out);
    for (size_t i = 0; i < out->nfirst; i++)
        out->first[i].index = whole_index(in, p->tensor, p->lo, p->n, out->first[i].index);
}
