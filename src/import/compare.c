#include "import/compare.h"

#include "import/refused.h"
#include "spec/cost.h"
#include "spec/data.h"
#include "spec/reference.h"

#include <math.h>
#include <string.h>

#define EVALUATED_FLOPS      2e9               /* of the reference at one shape */
#define EVALUATED_FLOPS_MOST 6e9               /* … where there is no smaller one */
#define EVALUATED_BYTES      ((size_t)2 << 30) /* of all inputs and parameters, in float64 */

/* What an error may be, in float64: the reference and PyTorch differ in the order of sums alone.
 * Where the module itself rounds to a narrower type on the way, that shows. */
#define BOUND 1e-9
/* Of a tensor's largest magnitude: below, errors are relative to this. Sums of rounded terms that
 * cancel are off by as much as their terms. */
#define SMALL        1e-3
#define ROUNDING     1e-7 /* of an estimate for fp32: 2^-53 over 2^-24, times 50 */
#define SMALL_NARROW 0.25

/* By the coarsest rounding on the way, relative; 0: none. */
static double bound_for(double narrow) {
    return narrow == 0 ? BOUND : narrow < 1e-6 ? 1e-4 : 4 * narrow;
}

enum { GRACE_MS = 60000 }; /* the helper itself gives up earlier, and says where */

/* What flows: an input, a parameter, or a result. Results are kept in float64. */
struct held {
    str name;
    enum dtype dtype;
    size_t rank;
    int64_t extent[TASK_MAX_RANK];
    size_t count;
    void *data;       /* heap */
    double *estimate; /* heap; of a result's error in the task's class; NULL: not known */
};

struct comparing {
    const struct comparison_options *o;
    const struct chain *chain;
    struct task **tasks; /* of each use, with its results as they are compared */
    struct inst **insts; /* … at the shape */
    const json *sizes;   /* the shape: values of dimensions; NULL: the task's own */
    struct arena *arena; /* of one shape */
    struct held *held;   /* of one set of values; the leaves are first */
    size_t nheld;
    struct compared *out;
};

/* ---- sizes ---- */

static bool size_of_dim(const struct comparing *c, str name, int64_t *out) {
    if (json_get_i64(c->sizes, arena_cstr(c->arena, name), out))
        return true;
    for (size_t i = 0; i < c->chain->graph->ndims; i++)
        if (str_eq(c->chain->graph->dims[i].name, name)) {
            *out = c->chain->graph->dims[i].value;
            return true;
        }
    return str_to_i64(name, out);
}

static str label(const struct comparing *c) {
    str text = {0};
    const struct graph *g = c->chain->graph;
    int64_t v;
    for (size_t i = 0; i < g->ndims; i++)
        if (!g->dims[i].is.n && size_of_dim(c, g->dims[i].name, &v))
            text = arena_printf(c->arena, "%.*s%s%.*s=%lld", STR_ARG(text), text.n ? " " : "",
                                STR_ARG(g->dims[i].name), (long long)v);
    return text.n ? text : S("the sizes of the file");
}

static bool bind_all(struct comparing *c, struct err *err) {
    c->insts = arena_array(c->arena, struct inst *, c->chain->nuses + 1);
    for (size_t i = 0; i < c->chain->nuses; i++) {
        const struct task *t = c->tasks[i];
        struct binding set[TASK_MAX_DIMS];
        size_t n = 0;
        for (size_t k = 0; k < t->ndims; k++)
            if (!t->dims[k].derived && c->sizes &&
                json_get_i64(c->sizes, arena_cstr(c->arena, t->dims[k].name), &set[n].value))
                set[n++].name = t->dims[k].name;
        if (!task_bind(t, set, n, c->arena, &c->insts[i], err))
            return task_refused(err, c->o->file, t->text);
    }
    return true;
}

static bool steps_of(const struct comparing *c, const struct use *u, int64_t *out) {
    *out = 1;
    return !u->repeats || (size_of_dim(c, u->over, out) && *out > 0);
}

/* ---- what flows ---- */

static struct held *find_held(const struct comparing *c, str name) {
    for (size_t i = 0; i < c->nheld; i++)
        if (str_eq(c->held[i].name, name))
            return &c->held[i];
    return NULL;
}

static size_t bytes_of(const struct held *h) {
    return h->count * dtype_info(h->dtype)->bytes;
}

static struct held *hold(struct comparing *c, str name, enum dtype dtype, size_t rank,
                         const int64_t *extent) {
    struct held *h = &c->held[c->nheld++];
    *h = (struct held){.name = name, .dtype = dtype, .rank = rank, .count = 1};
    for (size_t i = 0; i < rank; i++) {
        h->extent[i] = extent[i];
        h->count *= (size_t)extent[i];
    }
    h->data = mem_alloc(bytes_of(h) + 8);
    return h;
}

/* With one dimension more than a slice of it has. */
static struct held *hold_slices(struct comparing *c, str name, enum dtype dtype,
                                const struct bound_tensor *slice, size_t rank, size_t axis,
                                int64_t n) {
    int64_t extent[TASK_MAX_RANK + 1];
    for (size_t i = 0; i <= rank && i < TASK_MAX_RANK; i++)
        extent[i] = i < axis ? slice->extent[i] : i == axis ? n : slice->extent[i - 1];
    return hold(c, name, dtype, rank + 1, extent);
}

/* Copies slice `index` along an axis, out of h or into it. */
static void copy_slice(struct held *h, size_t axis, int64_t index, char *slice, bool into) {
    size_t inner = dtype_info(h->dtype)->bytes, outer = 1;
    for (size_t i = 0; i < h->rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : (size_t)h->extent[i];
    for (size_t i = 0; i < outer; i++) {
        char *at = (char *)h->data + (i * (size_t)h->extent[axis] + (size_t)index) * inner;
        memcpy(into ? at : slice + i * inner, into ? slice + i * inner : at, inner);
    }
}

static const struct leaf *find_leaf(const struct chain *c, str path) {
    for (size_t i = 0; i < c->nleaves; i++)
        if (str_eq(c->leaves[i].path, path))
            return &c->leaves[i];
    return NULL;
}

/* The extent of one dimension of an input or a parameter. */
static bool leaf_extent(const struct comparing *c, const struct leaf *l, size_t axis,
                        int64_t *out) {
    str shape = str_cut(l->shape, 1, l->shape.n - 2), word;
    for (size_t i = 0; str_word(&shape, ',', &word); i++)
        if (i == axis)
            return size_of_dim(c, word, out) && *out > 0;
    return false;
}

/* ---- values that are given ---- */

static void fill(const struct comparing *c, size_t use, size_t tensor, uint64_t seed, size_t step,
                 void *data) {
    /* Every other time with random signs, where parameters that are ones or zeros vary too. */
    enum data_kind kind = seed % 2 ? DATA_STATED : DATA_SIGNED;
    data_fill_all(c->insts[use], NULL, tensor, kind, seed + 1000 * (uint64_t)use + 1000000 * step,
                  c->o->threads, data);
}

static bool fill_slices(struct comparing *c, size_t use, const struct link *l, size_t tensor,
                        uint64_t seed, struct err *err) {
    const struct use *u = &c->chain->uses[use];
    const struct bound_tensor *b = &c->insts[use]->tensors[tensor];
    const struct tensor *t = &c->tasks[use]->tensors[tensor];
    size_t axis = l->picked ? l->axis : u->axis;
    struct held *h = find_held(c, l->flow);
    int64_t n;
    if (!leaf_extent(c, find_leaf(c->chain, l->flow), axis, &n) || axis > t->rank ||
        t->rank + 1 > TASK_MAX_RANK || (l->picked && l->index >= n))
        return err_set(err, ERR_NO, "%s: the sizes of %.*s are not known", c->o->file,
                       STR_ARG(l->flow));
    if (!h)
        h = hold_slices(c, l->flow, t->dtype, b, t->rank, axis, n);
    char *slice = mem_alloc(b->bytes + 8);
    for (int64_t i = l->picked ? l->index : 0; i < (l->picked ? l->index + 1 : n); i++) {
        fill(c, use, tensor, seed, (size_t)i, slice);
        copy_slice(h, axis, i, slice, true);
    }
    mem_free(slice);
    return true;
}

/* Each input and parameter as the first use that reads it states it. */
static bool fill_leaves(struct comparing *c, uint64_t seed, struct err *err) {
    for (size_t i = 0; i < c->chain->nuses; i++) {
        const struct use *u = &c->chain->uses[i];
        for (size_t k = 0; k < u->nin; k++) {
            const struct link *l = &u->in[k];
            int t = tensor_find(c->tasks[i], l->tensor);
            const struct held *h = find_held(c, l->flow);
            if (t < 0 || !find_leaf(c->chain, l->flow) || (h && !l->picked))
                continue;
            if (l->picked || l->each) {
                if (!fill_slices(c, i, l, (size_t)t, seed, err))
                    return false;
                continue;
            }
            const struct bound_tensor *b = &c->insts[i]->tensors[t];
            struct held *made = hold(c, l->flow, c->tasks[i]->tensors[t].dtype,
                                     c->tasks[i]->tensors[t].rank, b->extent);
            fill(c, i, (size_t)t, seed, 0, made->data);
        }
    }
    return true;
}

/* ---- the module ---- */

static json *input_files(const struct comparing *c, struct err *err) {
    json *files = json_object();
    bool ok = true;
    for (size_t i = 0; i < c->nheld && ok; i++) {
        const struct held *h = &c->held[i];
        double *wide = mem_alloc(h->count * sizeof *wide + 8);
        data_load(h->dtype, h->data, h->count, wide);
        str path = arena_printf(c->arena, "input-%zu", i);
        ok = python_give(c->o->python, path, (str){(const char *)wide, h->count * sizeof *wide},
                         err);
        json *file = json_object();
        json_set_str(file, "file", path);
        json_set(files, arena_cstr(c->arena, find_leaf(c->chain, h->name)->name), file);
        mem_free(wide);
    }
    if (ok)
        return files;
    json_free(files);
    return NULL;
}

static str output_file(const struct comparing *c, size_t i) {
    return arena_printf(c->arena, "output-%zu", i);
}

/* The module's outputs on these inputs, in files; what it answers. */
static json *ask_module(const struct comparing *c, struct err *err) {
    json *files = input_files(c, err);
    if (!files)
        return NULL;
    const struct graph *g = c->chain->graph;
    json *request = json_object(), *sizes = json_object(), *outputs = json_array();
    int64_t v;
    for (size_t i = 0; i < g->ndims; i++)
        if (!g->dims[i].is.n && size_of_dim(c, g->dims[i].name, &v))
            json_set_i64(sizes, arena_cstr(c->arena, g->dims[i].name), v);
    for (size_t i = 0; i < c->chain->noutputs; i++)
        json_push_str(outputs, output_file(c, i));
    json_set(request, "sizes", sizes);
    json_set(request, "inputs", files);
    json_set(request, "outputs", outputs);
    json *answer = python_ask(c->o->python, request, c->o->limit_s * 1000 + GRACE_MS, err);
    json_free(request);
    return answer;
}

/* ---- the tasks, in order ---- */

/* One run of a use's task: what its inputs are, and which of those are copies. */
struct running {
    const void *data[TASK_MAX_TENSORS];
    void *own[TASK_MAX_TENSORS];
};

static const struct link *find_link(const struct link *links, size_t n, str tensor) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(links[i].tensor, tensor))
            return &links[i];
    return NULL;
}

/* A copy of h, or of one slice of it, in the type that the task reads. */
static void *copy_as(struct held *h, bool slice, size_t axis, int64_t index, enum dtype dtype,
                     size_t count) {
    double *wide = mem_alloc(count * sizeof *wide + 8);
    char *part = mem_alloc(count * sizeof *wide + 8);
    void *made = mem_alloc(count * sizeof *wide + 8);
    if (slice)
        copy_slice(h, axis, index, part, false);
    data_load(h->dtype, slice ? part : h->data, count, wide);
    data_store(dtype, wide, count, made);
    mem_free(wide);
    mem_free(part);
    return made;
}

static bool give_input(struct comparing *c, size_t use, size_t tensor, int64_t step,
                       const struct held *states, struct running *r, struct err *err) {
    const struct use *u = &c->chain->uses[use];
    const struct tensor *t = &c->tasks[use]->tensors[tensor];
    size_t count = (size_t)c->insts[use]->tensors[tensor].count;
    const struct link *l = find_link(u->in, u->nin, t->name);
    if (!l)
        return err_set(err, ERR_NO, "%s: nothing is connected with %.*s", c->o->file,
                       STR_ARG(t->name));
    const struct held *state = l->state && states ? &states[l - u->in] : NULL;
    if (state && state->data) {
        r->data[tensor] = state->data;
        return true;
    }
    if (l->state && !l->flow.n) {
        r->data[tensor] = r->own[tensor] = mem_alloc(count * sizeof(double) + 8);
        return true;
    }
    struct held *h = find_held(c, l->flow);
    bool slice = l->picked || l->each;
    if (!h ||
        (slice ? h->count / (size_t)h->extent[l->picked ? l->axis : u->axis] : h->count) != count)
        return err_set(err, ERR_NO, "%s: %.*s is read as another size", c->o->file,
                       STR_ARG(l->flow));
    if (!slice && h->dtype == t->dtype)
        r->data[tensor] = h->data;
    else
        r->data[tensor] = r->own[tensor] = copy_as(h, slice, l->picked ? l->axis : u->axis,
                                                   l->picked ? l->index : step, t->dtype, count);
    return true;
}

static void keep_result(struct comparing *c, size_t use, const struct reference *ref, int64_t step,
                        int64_t steps) {
    const struct use *u = &c->chain->uses[use];
    const struct tensor *t = &c->tasks[use]->tensors[ref->tensor];
    const struct bound_tensor *b = &c->insts[use]->tensors[ref->tensor];
    const struct link *l = find_link(u->out, u->nout, t->name);
    if (!l)
        return;
    if (l->each) {
        struct held *h = find_held(c, l->flow);
        if (!h)
            h = hold_slices(c, l->flow, DTYPE_F64, b, t->rank, u->axis, steps);
        copy_slice(h, u->axis, u->reverse ? steps - 1 - step : step, (char *)ref->value, true);
    } else if (l->flow.n) {
        struct held *h = hold(c, l->flow, DTYPE_F64, t->rank, b->extent);
        memcpy(h->data, ref->value, bytes_of(h));
        h->estimate = mem_alloc(bytes_of(h) + 8);
        memcpy(h->estimate, ref->estimate, bytes_of(h));
    }
    if (l->last.n && step == steps - 1) {
        struct held *h = hold(c, l->last, DTYPE_F64, t->rank, b->extent);
        memcpy(h->data, ref->value, bytes_of(h));
    }
}

/* What the step gave, for the next one. */
static void carry(struct comparing *c, size_t use, const struct reference *refs, size_t n,
                  struct held *states) {
    const struct use *u = &c->chain->uses[use];
    for (size_t i = 0; i < u->nin; i++)
        for (size_t k = 0; k < n && u->in[i].state; k++) {
            if (!str_eq(c->tasks[use]->tensors[refs[k].tensor].name, u->in[i].next))
                continue;
            int t = tensor_find(c->tasks[use], u->in[i].tensor);
            states[i].data =
                states[i].data ? states[i].data : mem_alloc(refs[k].count * sizeof(double) + 8);
            data_store(c->tasks[use]->tensors[t].dtype, refs[k].value, refs[k].count,
                       states[i].data);
        }
}

/* ---- a part's torch line ---- */

enum { LINES_TRIED = 6 };

static bool give_tensor(const struct comparing *c, json *list, const struct tensor *t, str file,
                        enum dtype dtype, const struct bound_tensor *b, const void *data,
                        struct err *err) {
    size_t count = (size_t)b->count;
    double *wide = mem_alloc(count * sizeof *wide + 8);
    json *j = json_object(), *shape = json_array();
    data_load(dtype, data, count, wide);
    bool ok = python_give(c->o->python, file, (str){(const char *)wide, count * sizeof *wide}, err);
    for (size_t i = 0; i < t->rank; i++)
        json_push_i64(shape, b->extent[i]);
    json_set_str(j, "name", t->name);
    json_set_str(j, "file", file);
    json_set_str(j, "dtype", str_view(dtype_info(dtype)->name));
    json_set(j, "shape", shape);
    json_push(list, j);
    mem_free(wide);
    return ok;
}

/* Whether PyTorch computes by the line what the task's reference gave, on these inputs. It stays
 * with the part only where that held every time. */
static bool try_line(const struct comparing *c, size_t use, const struct running *r,
                     const struct reference *refs, size_t nrefs, struct err *err) {
    struct part *part = &c->chain->parts[c->chain->uses[use].part];
    const struct task *t = c->tasks[use];
    const struct inst *in = c->insts[use];
    bool ok = true, holds = false;
    if (!part->line.n || part->wrong_line || part->tried >= LINES_TRIED)
        return true;
    part->tried++;
    json *request = json_object(), *dims = json_object(), *given = json_array(),
         *wanted = json_array();
    for (size_t i = 0; i < t->ndims; i++)
        json_set_i64(dims, arena_cstr(c->arena, t->dims[i].name), in->dims[i]);
    for (size_t i = 0; i < t->ntensors && ok; i++)
        if (tensor_is_input(&t->tensors[i]))
            ok = give_tensor(c, given, &t->tensors[i], arena_printf(c->arena, "line-%zu", i),
                             t->tensors[i].dtype, &in->tensors[i], r->data[i], err);
    for (size_t i = 0; i < nrefs && ok; i++)
        ok = give_tensor(c, wanted, &t->tensors[refs[i].tensor],
                         arena_printf(c->arena, "wanted-%zu", i), DTYPE_F64,
                         &in->tensors[refs[i].tensor], refs[i].value, err);
    json_set_str(request, "line", part->line);
    json_set(request, "dims", dims);
    json_set(request, "given", given);
    json_set(request, "wanted", wanted);
    json *answer =
        ok ? python_ask(c->o->python, request, c->o->limit_s * 1000 + GRACE_MS, err) : NULL;
    part->wrong_line = !(json_get_bool(answer, "holds", &holds) && holds);
    ok = answer != NULL;
    json_free(request);
    json_free(answer);
    return ok;
}

static bool run_step(struct comparing *c, size_t use, int64_t step, int64_t steps,
                     struct held *states, struct err *err) {
    struct running r = {0};
    struct reference *refs = NULL;
    size_t nrefs = 0;
    const struct task *t = c->tasks[use];
    const struct use *u = &c->chain->uses[use];
    int64_t at = u->reverse ? steps - 1 - step : step;
    bool ok = true;
    for (size_t i = 0; i < t->ntensors && ok; i++)
        if (tensor_is_input(&t->tensors[i]))
            ok = give_input(c, use, i, at, states, &r, err);
    ok = ok && reference_eval(c->insts[use], r.data, c->o->threads, &refs, &nrefs, NULL, err);
    ok = ok && (step > 0 || try_line(c, use, &r, refs, nrefs, err));
    for (size_t i = 0; i < nrefs && ok; i++)
        keep_result(c, use, &refs[i], step, steps);
    if (ok && u->repeats)
        carry(c, use, refs, nrefs, states);
    reference_release(refs, nrefs);
    for (size_t i = 0; i < t->ntensors; i++)
        mem_free(r.own[i]);
    return ok;
}

static bool run_use(struct comparing *c, size_t use, struct err *err) {
    const struct use *u = &c->chain->uses[use];
    struct held *states = mem_alloc((u->nin + 1) * sizeof *states);
    int64_t steps;
    bool ok =
        steps_of(c, u, &steps) || err_set(err, ERR_NO, "%s: how often %.*s repeats is not known",
                                          c->o->file, STR_ARG(u->module));
    for (int64_t step = 0; ok && step < steps; step++)
        ok = run_step(c, use, step, steps, states, err);
    for (size_t i = 0; i < u->nin; i++)
        mem_free(states[i].data);
    mem_free(states);
    return ok;
}

/* ---- one set of values ---- */

/* Relative to the magnitude; NaN and infinities must be in the same places. What differs by less
 * than float64 rounds, as far below the estimate of fp32's error as its unit is below fp32's, is
 * equal: sums that cancel to nothing are. */
static double largest_error(const struct held *h, const double *want, double small, size_t *at) {
    const double *got = h->data;
    double largest = 0, worst = 0;
    for (size_t i = 0; i < h->count; i++)
        if (isfinite(want[i]) && fabs(want[i]) > largest)
            largest = fabs(want[i]);
    for (size_t i = 0; i < h->count; i++) {
        double error = 0;
        if (isfinite(got[i]) && isfinite(want[i])) {
            double scale = fmax(fabs(want[i]), small * largest);
            double off = fabs(got[i] - want[i]);
            error = off == 0 ? 0 : off / fmax(scale, 1e-300);
            if (h->estimate && isfinite(h->estimate[i]) && off <= ROUNDING * h->estimate[i])
                error = fmin(error, BOUND);
        } else if (!(isnan(got[i]) && isnan(want[i])) && !(got[i] == want[i])) {
            error = INFINITY;
        }
        if (error > worst) {
            worst = error;
            *at = i;
        }
    }
    return worst;
}

/* "y[3,17]" */
static str element(const struct comparing *c, const struct held *h, size_t at) {
    str text = {0};
    for (size_t i = h->rank; i-- > 0; at /= (size_t)h->extent[i])
        text = arena_printf(c->arena, "%zu%s%.*s", at % (size_t)h->extent[i], text.n ? "," : "",
                            STR_ARG(text));
    return arena_printf(c->arena, "%.*s[%.*s]", STR_ARG(h->name), STR_ARG(text));
}

static bool compare_output(struct comparing *c, size_t i, double narrow, struct err *err) {
    struct held *h = find_held(c, c->chain->outputs[i]);
    str bytes;
    if (!h)
        return err_set(err, ERR_NO, "%s: nothing computes result %zu", c->o->file, i);
    if (!python_take(c->o->python, output_file(c, i), EVALUATED_BYTES, c->arena, &bytes, err))
        return err_wrap(err, "the module's %.*s", STR_ARG(h->name));
    if (bytes.n != h->count * sizeof(double))
        return err_set(err, ERR_NO, "the module's %.*s has %zu elements, the task's %zu at %.*s",
                       STR_ARG(h->name), bytes.n / sizeof(double), h->count, STR_ARG(label(c)));
    double *want = mem_alloc(bytes.n + 8), *got = mem_alloc(bytes.n + 8);
    size_t at = 0;
    memcpy(want, bytes.p, bytes.n);
    data_load(h->dtype, h->data, h->count, got);
    struct held wide = *h;
    wide.data = got;
    double bound = bound_for(narrow), small = narrow < 1e-6 ? SMALL : SMALL_NARROW;
    double error = largest_error(&wide, want, small, &at);
    if (error > c->out->error)
        c->out->error = error;
    bool ok = error <= bound ||
              err_set(err, ERR_NO,
                      "the task does not compute what the module does: %.*s is %.9g, the "
                      "module has %.9g (%.*s)",
                      STR_ARG(element(c, h, at)), got[at], want[at], STR_ARG(label(c)));
    mem_free(want);
    mem_free(got);
    return ok;
}

static size_t most_held(const struct chain *c) {
    size_t n = c->nleaves + 1;
    for (size_t i = 0; i < c->nuses; i++)
        n += 2 * c->uses[i].nout;
    return n;
}

static bool compare_seed(struct comparing *c, uint64_t seed, struct err *err) {
    double narrow = 0;
    bool line = false;
    c->held = mem_alloc(most_held(c->chain) * sizeof *c->held);
    c->nheld = 0;
    json *answer = fill_leaves(c, seed, err) ? ask_module(c, err) : NULL;
    bool ok = answer != NULL;
    json_get_f64(answer, "narrow", &narrow);
    json_get_bool(answer, "line", &line);
    c->out->line = c->out->line && line;
    for (size_t i = 0; i < c->chain->nuses && ok; i++)
        ok = run_use(c, i, err);
    for (size_t i = 0; i < c->chain->noutputs && ok; i++)
        ok = compare_output(c, i, narrow, err);
    for (size_t i = 0; i < c->nheld; i++) {
        mem_free(c->held[i].data);
        mem_free(c->held[i].estimate);
    }
    mem_free(c->held);
    json_free(answer);
    return ok;
}

/* ---- shapes ---- */

static bool is_small(const struct comparing *c, double most) {
    double flops = 0, bytes = 0;
    for (size_t i = 0; i < c->chain->nuses; i++) {
        struct cost cost;
        const struct inst *in = c->insts[i];
        int64_t steps = 1;
        steps_of(c, &c->chain->uses[i], &steps);
        cost_of(in, &cost);
        flops += cost.flops * (double)steps;
        for (size_t t = 0; t < in->task->ntensors; t++)
            bytes += (double)in->tensors[t].count * sizeof(double);
    }
    return flops < most && bytes < (double)EVALUATED_BYTES;
}

static bool compare_shape(struct comparing *c, double most, struct err *err) {
    if (!bind_all(c, err))
        return false;
    if (!is_small(c, most))
        return true;
    for (uint64_t seed = 1; seed <= COMPARED_SEEDS; seed++)
        if (!compare_seed(c, seed, err))
            return false;
    c->out->shapes++;
    return true;
}

/* Each use has a task of its own: what other tasks give it is read in float64. */
static bool parse_all(struct comparing *c, struct arena *a, struct err *err) {
    c->tasks = arena_array(a, struct task *, c->chain->nuses + 1);
    for (size_t i = 0; i < c->chain->nuses; i++) {
        const struct use *u = &c->chain->uses[i];
        if (!task_parse(c->chain->parts[u->part].name, c->chain->parts[u->part].text, a,
                        &c->tasks[i], err))
            return task_refused(err, c->o->file, c->chain->parts[u->part].text);
        for (size_t k = 0; k < u->nin; k++) {
            int t = tensor_find(c->tasks[i], u->in[k].tensor);
            if (t >= 0 && dtype_info(c->tasks[i]->tensors[t].dtype)->kind == 'f' &&
                (u->in[k].state || !find_leaf(c->chain, u->in[k].flow)))
                c->tasks[i]->tensors[t].dtype = DTYPE_F64;
        }
    }
    return true;
}

bool compare_chain(const struct comparison_options *o, const struct chain *chain, struct arena *a,
                   struct compared *out, struct err *err) {
    struct comparing c = {.o = o, .chain = chain, .out = out};
    *out = (struct compared){.line = true, .seeds = COMPARED_SEEDS};
    bool ok = parse_all(&c, a, err);
    size_t n = json_len(chain->checks);
    for (size_t i = 0; i <= n + 1 && ok; i++) {
        bool own = i == n,
             again = i == n + 1; /* in the end the first once more, if none was small */
        c.sizes = own ? NULL : json_at(chain->checks, again ? 0 : i);
        c.arena = arena_new((size_t)4 << 30);
        if (again ? n && !out->shapes : !own || out->shapes < COMPARED_SHAPES)
            ok = compare_shape(&c, again ? EVALUATED_FLOPS_MOST : EVALUATED_FLOPS, err);
        arena_free(c.arena);
    }
    if (ok && !out->shapes)
        return err_set(err, ERR_NO,
                       "%s: the module runs at no shape that is small enough to be compared; state "
                       "its sizes as numbers at the top of the file, so that they can be varied",
                       o->file);
    return ok;
}
