/* What a part of an output needs, and its data. */
#include "spec/part.h"

#include "base/checked.h"
#include "base/parallel.h"
#include "spec/evaluate.h"
#include "spec/scalar.h"
#include <math.h>
#include <string.h>

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

static bool is_needed(const struct window *w, size_t rank) {
    return rank == 0 ? w->count > 0 : w->n[0] > 0;
}

/* The window grows to the hull of what it holds and this box. */
static void widen(struct window *w, const struct range *box, size_t rank) {
    bool some = is_needed(w, rank);
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

static bool close_windows(struct needs *n) {
    for (size_t i = 0; i < n->in->task->ntensors; i++) {
        size_t rank = n->in->task->tensors[i].rank;
        struct window *both[2] = {&n->w.read[i], &n->w.made[i]};
        for (int k = 0; k < 2; k++)
            if (both[k]->count > 0 && !window_close(both[k], rank))
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

/* Terms of the reductions by which an input is defined: of those that are the same along a row, and
 * of those that are not. */
struct defining {
    double row, element;
};

static void count_terms(const struct ranges *r, const struct expr *e, uint32_t along, double terms,
                        struct defining *out) {
    struct ranges inside = *r;
    if (e->kind == EXPR_REDUCE) {
        if (!ranges_enter(&inside, e->reduce))
            return;
        for (size_t k = 0; k < e->reduce->nvars; k++) {
            struct range v = inside.index[e->reduce->vars[k].var];
            terms *= (double)v.hi - (double)v.lo + 1;
        }
        *(expr_vars(e) & along ? &out->element : &out->row) += terms;
    }
    for (size_t k = 0; k < e->nargs; k++)
        count_terms(&inside, e->args[k], along, terms, out);
}

static struct defining defining_of(const struct inst *in, size_t tensor) {
    const struct task *t = in->task;
    size_t rank = t->tensors[tensor].rank;
    struct defining d = {0};
    for (size_t i = 0; i < t->ndefinitions; i++) {
        const struct statement *s = &t->definitions[i];
        if (s->tensor != tensor)
            continue;
        int last = rank ? s->position[rank - 1] : -1;
        struct ranges r = ranges_of(in, s);
        count_terms(&r, s->body, last < 0 ? 0 : UINT32_C(1) << last, 1, &d);
    }
    return d;
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

double part_cost(const struct inst *in, const struct part *p) {
    struct needs *n = mem_alloc(sizeof *n);
    bool counted = needs_of(in, p, n);
    double cost = counted ? evaluate_cost(in, &n->w) : INFINITY;
    for (size_t i = 0; i < in->task->ntensors && counted; i++) {
        const struct window *w = &n->w.read[i];
        if (!tensor_is_input(&in->task->tensors[i]) || w->count == 0)
            continue;
        struct defining d = defining_of(in, i);
        cost += (double)w->count * (1 + d.element) + (double)runs_of(in, i, w).count * d.row;
    }
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

static void fill_runs(void *ctx, unsigned part, int64_t first, int64_t last) {
    const struct filling *f = ctx;
    size_t size = dtype_info(f->in->task->tensors[f->tensor].dtype)->bytes;
    (void)part;
    for (int64_t i = first; i < last; i++) {
        int64_t at = i * f->runs.length;
        data_fill(f->in, f->scale, f->tensor, f->kind, f->seed,
                  whole_index(f->in, f->tensor, f->w->lo, f->w->n, at), f->runs.length,
                  f->dst + (size_t)at * size);
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
        parallel_for(threads, f->runs.count, fill_runs, f);
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
