/* The plan's arithmetic for one instance: which requires hold, and the numbers of workspaces,
 * memsets, tensor maps and launches, within the limits that CUDA sets for any GPU.
 *
 * The rules of tensor maps are those of cuTensorMapEncodeTiled without interleaving, checked here
 * so that a plan fails with a reason and a place instead of with "invalid value". That the address
 * is aligned to 16 bytes is not among them: every tensor and workspace is. */
#include "kernel/plan.h"

#include "base/checked.h"
#include "spec/data.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define GRID_X_MAX  INT64_C(0x7fffffff)
#define GRID_YZ_MAX 65535
#define BLOCK_MAX   1024
#define BLOCK_Z_MAX 64
#define SHARED_MAX  (INT64_C(227) << 10)
#define CLUSTER_MAX 8 /* blocks: what every GPU with clusters can do */

struct binding_run {
    const struct candidate *c;
    const struct inst *in;
    struct err *err;
    int64_t lets[CANDIDATE_MAX_LINES];
    size_t nlets; /* how many have a value */
};
#define BIND_FAIL(b, at, len, hint, ...)                                                           \
    err_at((b)->err, (b)->c->file, (b)->c->source, (at), (len), (hint), __VA_ARGS__)

static bool bind_value(struct binding_run *b, const struct expr *e, int64_t *out) {
    struct expr_fault f = {0};
    if (expr_eval_integer(e, b->in->dims, b->lets, out, &f))
        return true;
    return BIND_FAIL(b, f.where->at, f.where->len, NULL, "no value for this shape: %s", f.why);
}

/* Lets in their order, those written before `at`: a require before a let guards its arithmetic. */
static bool lets_until(struct binding_run *b, size_t at) {
    for (; b->nlets < b->c->nlets && b->c->lets[b->nlets].value->at < at; b->nlets++)
        if (!bind_value(b, b->c->lets[b->nlets].value, &b->lets[b->nlets]))
            return false;
    return true;
}

bool plan_fits(const struct candidate *c, const struct inst *in, bool *fits, str *which,
               struct err *err) {
    struct binding_run b = {.c = c, .in = in, .err = err};
    *fits = true;
    for (size_t i = 0; i < c->nrequires; i++) {
        const struct plan_require *r = &c->requires_[i];
        int64_t holds;
        if (!lets_until(&b, r->condition->at) || !bind_value(&b, r->condition, &holds))
            return false;
        if (!holds) {
            *fits = false;
            *which = r->text;
            return true;
        }
    }
    return lets_until(&b, SIZE_MAX);
}

/* ---- workspaces ---- */

static bool bind_extents(struct binding_run *b, const struct plan_workspace *w,
                         int64_t extent[TASK_MAX_RANK]) {
    for (size_t i = 0; i < w->rank; i++) {
        const struct expr *e = w->extent[i];
        if (!bind_value(b, e, &extent[i]))
            return false;
        if (extent[i] < 1)
            return BIND_FAIL(b, e->at, e->len, NULL,
                             "an extent of workspace %.*s is %" PRId64 ", it must be at least 1",
                             STR_ARG(w->name), extent[i]);
    }
    return true;
}

static bool bind_workspace(struct binding_run *b, const struct plan_workspace *w,
                           struct bound_workspace *out) {
    int64_t extent[TASK_MAX_RANK], bytes = (int64_t)dtype_info(w->dtype)->bytes;
    if (!bind_extents(b, w, extent))
        return false;
    for (size_t i = 0; i < w->rank; i++)
        if (!mul_i64(bytes, extent[i], &bytes))
            return BIND_FAIL(b, w->at, w->len, NULL,
                             "the bytes of workspace %.*s do not fit 64 bits", STR_ARG(w->name));
    *out = (struct bound_workspace){w->name, w->dtype, (uint64_t)bytes, w->align, w->prepared};
    return true;
}

/* ---- memsets ---- */

/* The bits of a number in the type; false: it does not have it. */
static bool pattern_of(enum dtype t, double v, uint64_t *out) {
    double back;
    *out = 0;
    data_store(t, &v, 1, out);
    data_load(t, out, 1, &back);
    return back == v;
}

static bool memset_pattern(struct binding_run *b, const struct plan_memset *m, enum dtype t,
                           uint64_t *out) {
    int64_t v;
    if (!m->value)
        return pattern_of(t, m->negative ? -INFINITY : INFINITY, out);
    if (!bind_value(b, m->value, &v))
        return false;
    /* Back again: an int64 between two doubles is one that i64 alone has. */
    double d = (double)v;
    bool exact = fabs(d) < 0x1p63 && (int64_t)d == v;
    if (t == DTYPE_I64)
        *out = (uint64_t)v;
    if (t == DTYPE_I64 || (exact && pattern_of(t, d, out)))
        return true;
    return BIND_FAIL(b, m->value->at, m->value->len, NULL, "%" PRId64 " is not a value of %s", v,
                     dtype_info(t)->name);
}

static bool bind_memset(struct binding_run *b, const struct plan_memset *m,
                        const struct bound_plan *p, struct bound_memset *out) {
    enum dtype t = plan_memory_dtype(b->c, m->of, m->ref);
    size_t size = dtype_info(t)->bytes;
    uint64_t bytes =
        m->of == ARG_TENSOR ? b->in->tensors[m->ref].bytes : p->workspaces[m->ref].bytes;
    *out = (struct bound_memset){
        .of = m->of, .ref = m->ref, .size = (unsigned)size, .count = bytes / size};
    return memset_pattern(b, m, t, &out->pattern);
}

/* ---- tensor maps ---- */

#define BOX_MAX    256
#define STEP_MAX   8
#define EXTENT_MAX (INT64_C(1) << 32)
#define STRIDE_MAX (INT64_C(1) << 40)
#define BOX_BYTES  (UINT64_C(227) << 10)

/* Extents as the map sees them: what it reshapes to, or the tensor's own the other way round. */
static bool map_extents(struct binding_run *b, const struct plan_tensormap *m,
                        int64_t out[TENSORMAP_MAX_RANK], int64_t *count) {
    int64_t own[TASK_MAX_RANK];
    *count = 1;
    if (m->of == ARG_WORKSPACE && !bind_extents(b, &b->c->workspaces[m->ref], own))
        return false;
    size_t rank =
        m->of == ARG_WORKSPACE ? b->c->workspaces[m->ref].rank : b->c->task->tensors[m->ref].rank;
    if (m->of == ARG_TENSOR)
        memcpy(own, b->in->tensors[m->ref].extent, sizeof own);
    for (size_t i = 0; i < rank; i++)
        *count *= own[i]; /* fits: its bytes did */
    for (size_t i = 0; i < m->rank; i++)
        if (!m->shape[0])
            out[i] = own[rank - 1 - i];
        else if (!bind_value(b, m->shape[i], &out[i]))
            return false;
    return true;
}

static bool check_extents(struct binding_run *b, const struct plan_tensormap *m,
                          const int64_t extent[TENSORMAP_MAX_RANK], int64_t count) {
    int64_t product = 1;
    for (size_t i = 0; i < m->rank; i++) {
        if (extent[i] < 1 || extent[i] >= EXTENT_MAX)
            return BIND_FAIL(b, m->at, m->len, NULL,
                             "extent %zu of tensormap %.*s is %" PRId64
                             ", it must be from 1 to 2^32-1",
                             i, STR_ARG(m->name), extent[i]);
        if (!mul_i64(product, extent[i], &product))
            product = -1;
        if (product < 0)
            break;
    }
    if (product == count)
        return true;
    return BIND_FAIL(b, m->shape[0]->at, m->shape[0]->len,
                     "the shape has the same elements, counted another way",
                     "the shape of tensormap %.*s does not have the %" PRId64
                     " elements of the tensor",
                     STR_ARG(m->name), count);
}

/* Dense: each stride is the one before times the extent before. */
static bool bind_strides(struct binding_run *b, const struct plan_tensormap *m,
                         struct bound_tensormap *out) {
    int64_t stride = (int64_t)dtype_info(out->dtype)->bytes;
    for (size_t i = 0; i + 1 < m->rank; i++) {
        stride *= (int64_t)out->extent[i]; /* fits: the whole does */
        if (stride % 16)
            return BIND_FAIL(b, m->at, m->len,
                             "add a require line that makes it so, or pass the tensor itself",
                             "tensormap %.*s: dimension %zu has a stride of %" PRId64
                             " bytes, it must be a multiple of 16",
                             STR_ARG(m->name), i + 1, stride);
        if (stride >= STRIDE_MAX)
            return BIND_FAIL(b, m->at, m->len, NULL,
                             "tensormap %.*s: dimension %zu has a stride of %" PRId64
                             " bytes, it must be less than 2^40",
                             STR_ARG(m->name), i + 1, stride);
        out->stride[i] = (uint64_t)stride;
    }
    return true;
}

static bool bind_within(struct binding_run *b, const struct expr *e, const char *what, int64_t most,
                        uint32_t *out) {
    int64_t v;
    if (!bind_value(b, e, &v))
        return false;
    if (v < 1 || v > most)
        return BIND_FAIL(b, e->at, e->len, NULL,
                         "%s of a tensormap is %" PRId64 ", it must be from 1 to %" PRId64, what, v,
                         most);
    *out = (uint32_t)v;
    return true;
}

static bool bind_box(struct binding_run *b, const struct plan_tensormap *m,
                     struct bound_tensormap *out) {
    uint64_t bytes = dtype_info(out->dtype)->bytes;
    for (size_t i = 0; i < m->rank; i++) {
        out->step[i] = 1;
        if (!bind_within(b, m->box[i], "the box", BOX_MAX, &out->box[i]) ||
            (m->step[0] && !bind_within(b, m->step[i], "a step", STEP_MAX, &out->step[i])))
            return false;
        bytes *= (out->box[i] + out->step[i] - 1) / out->step[i];
    }
    if (out->step[0] != 1)
        return BIND_FAIL(b, m->step[0]->at, m->step[0]->len,
                         "only the outer dimensions can be stepped through",
                         "the innermost step of a tensormap must be 1");
    if (bytes > BOX_BYTES)
        return BIND_FAIL(b, m->box[0]->at, m->box[0]->len, NULL,
                         "a box of %" PRIu64 " bytes does not fit shared memory, %" PRIu64, bytes,
                         BOX_BYTES);
    return true;
}

/* The innermost row of the box against 16 bytes and the span that is swizzled. */
static bool bind_swizzle(struct binding_run *b, const struct plan_tensormap *m,
                         struct bound_tensormap *out) {
    int64_t span = 0, row = (int64_t)(out->box[0] * dtype_info(out->dtype)->bytes);
    if (m->swizzle && !bind_value(b, m->swizzle, &span))
        return false;
    if (span != 0 && span != 32 && span != 64 && span != 128)
        return BIND_FAIL(b, m->swizzle->at, m->swizzle->len, NULL,
                         "swizzle is %" PRId64 ", it must be 0, 32, 64 or 128", span);
    if (row % 16)
        return BIND_FAIL(b, m->box[0]->at, m->box[0]->len, NULL,
                         "the innermost row of the box has %" PRId64 " bytes (%" PRIu32
                         " elements of %s), it must be a multiple of 16",
                         row, out->box[0], dtype_info(out->dtype)->name);
    if (span && row > span)
        return BIND_FAIL(b, m->box[0]->at, m->box[0]->len, "make the box narrower and load several",
                         "the innermost row of the box has %" PRId64
                         " bytes, more than the %" PRId64 " that are swizzled",
                         row, span);
    out->swizzle = (unsigned)span;
    return true;
}

static bool bind_tensormap(struct binding_run *b, const struct plan_tensormap *m,
                           struct bound_tensormap *out) {
    int64_t extent[TENSORMAP_MAX_RANK] = {0}, count;
    *out = (struct bound_tensormap){.of = m->of,
                                    .ref = m->ref,
                                    .dtype = plan_memory_dtype(b->c, m->of, m->ref),
                                    .rank = (unsigned)m->rank,
                                    .fill_nan = m->fill_nan};
    if (!map_extents(b, m, extent, &count) || !check_extents(b, m, extent, count))
        return false;
    for (size_t i = 0; i < m->rank; i++)
        out->extent[i] = (uint64_t)extent[i];
    return bind_strides(b, m, out) && bind_box(b, m, out) && bind_swizzle(b, m, out);
}

/* ---- launches ---- */

struct extent_rule {
    const char *what; /* "grid" */
    int64_t most[3];
};

static bool bind_extent(struct binding_run *b, struct expr *const from[3],
                        const struct extent_rule *rule, uint32_t out[3]) {
    for (int i = 0; i < 3; i++) {
        int64_t v = 1;
        if (from[i] && !bind_value(b, from[i], &v))
            return false;
        if (v < 1 || v > rule->most[i])
            return BIND_FAIL(b, from[i]->at, from[i]->len, NULL,
                             "%s.%c is %" PRId64 ", it must be from 1 to %" PRId64, rule->what,
                             "xyz"[i], v, rule -> most[i]);
        out[i] = (uint32_t)v;
    }
    return true;
}

static bool bind_block(struct binding_run *b, const struct plan_launch *l,
                       struct bound_launch *out) {
    static const struct extent_rule rule = {"block", {BLOCK_MAX, BLOCK_MAX, BLOCK_Z_MAX}};
    if (!bind_extent(b, l->block, &rule, out->block))
        return false;
    uint64_t threads = (uint64_t)out->block[0] * out->block[1] * out->block[2];
    if (threads <= BLOCK_MAX)
        return true;
    return BIND_FAIL(b, l->block[0]->at, l->block[0]->len, NULL,
                     "a block of %" PRIu32 "x%" PRIu32 "x%" PRIu32 " has %" PRIu64
                     " threads, more than %d",
                     out->block[0], out->block[1], out->block[2], threads, BLOCK_MAX);
}

static bool bind_shared(struct binding_run *b, const struct plan_launch *l,
                        struct bound_launch *out) {
    int64_t v = 0;
    if (l->shared && !bind_value(b, l->shared, &v))
        return false;
    if (v < 0 || v > SHARED_MAX)
        return BIND_FAIL(b, l->shared->at, l->shared->len, NULL,
                         "%" PRId64
                         " bytes of dynamic shared memory, it must be from 0 to %" PRId64,
                         v, SHARED_MAX);
    out->shared = (uint64_t)v;
    return true;
}

static bool bind_cluster(struct binding_run *b, const struct plan_launch *l,
                         struct bound_launch *out) {
    static const struct extent_rule rule = {"cluster", {16, 16, 16}};
    if (!bind_extent(b, l->cluster, &rule, out->cluster))
        return false;
    uint32_t blocks = out->cluster[0] * out->cluster[1] * out->cluster[2];
    if (blocks > CLUSTER_MAX)
        return BIND_FAIL(b, l->cluster[0]->at, l->cluster[0]->len,
                         "16 is not portable: a GPU may refuse it",
                         "a cluster of %" PRIu32 " blocks, more than %d", blocks, CLUSTER_MAX);
    for (int i = 0; i < 3; i++)
        if (out->grid[i] % out->cluster[i])
            return BIND_FAIL(b, l->cluster[i]->at, l->cluster[i]->len,
                             "round the grid up, and let the blocks beyond the edge do nothing",
                             "cluster.%c is %" PRIu32 ", which does not divide grid.%c, %" PRIu32,
                             "xyz"[i], out -> cluster[i], "xyz"[i], out -> grid[i]);
    return true;
}

static bool bind_launch(struct binding_run *b, const struct plan_launch *l, struct arena *a,
                        struct bound_launch *out) {
    static const struct extent_rule grid = {"grid", {GRID_X_MAX, GRID_YZ_MAX, GRID_YZ_MAX}};
    out->kernel = l->kernel;
    out->cooperative = l->cooperative;
    out->once = l->once;
    out->nargs = l->nargs;
    out->args = arena_array(a, struct bound_arg, l->nargs);
    if (!bind_extent(b, l->grid, &grid, out->grid) || !bind_block(b, l, out) ||
        !bind_shared(b, l, out) || !bind_cluster(b, l, out))
        return false;
    for (size_t i = 0; i < l->nargs; i++) {
        const struct plan_arg *from = &l->args[i];
        out->args[i] = (struct bound_arg){.kind = from->kind, .ref = from->ref};
        if (from->kind == ARG_INTEGER && !bind_value(b, from->value, &out->args[i].value))
            return false;
    }
    return true;
}

static void plan_alloc(const struct candidate *c, struct arena *a, struct bound_plan *out) {
    *out = (struct bound_plan){.nsteps = c->nsteps,
                               .once_steps = c->once_steps,
                               .nlaunches = c->nlaunches,
                               .nmemsets = c->nmemsets,
                               .nworkspaces = c->nworkspaces,
                               .nmaps = c->nmaps};
    out->steps = arena_array(a, struct bound_step, c->nsteps);
    out->launches = arena_array(a, struct bound_launch, c->nlaunches);
    out->memsets = arena_array(a, struct bound_memset, c->nmemsets);
    out->workspaces = arena_array(a, struct bound_workspace, c->nworkspaces);
    out->maps = arena_array(a, struct bound_tensormap, c->nmaps);
    for (size_t i = 0; i < c->nsteps; i++)
        out->steps[i] = (struct bound_step){c->steps[i].kind, c->steps[i].index};
    memcpy(out->align, c->align, sizeof out->align);
}

bool plan_bind(const struct candidate *c, const struct inst *in, struct arena *a,
               struct bound_plan *out, struct err *err) {
    struct binding_run b = {.c = c, .in = in, .err = err};
    if (!lets_until(&b, SIZE_MAX))
        return false;
    plan_alloc(c, a, out);
    for (size_t i = 0; i < c->nworkspaces; i++)
        if (!bind_workspace(&b, &c->workspaces[i], &out->workspaces[i]))
            return false;
    for (size_t i = 0; i < c->nmaps; i++)
        if (!bind_tensormap(&b, &c->maps[i], &out->maps[i]))
            return false;
    for (size_t i = 0; i < c->nmemsets; i++)
        if (!bind_memset(&b, &c->memsets[i], out, &out->memsets[i]))
            return false;
    for (size_t i = 0; i < c->nlaunches; i++)
        if (!bind_launch(&b, &c->launches[i], a, &out->launches[i]))
            return false;
    return true;
}
