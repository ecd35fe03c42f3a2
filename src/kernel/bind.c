/* The plan's arithmetic for one instance: which requires hold, and the numbers of every launch
 * within the limits that CUDA sets for any GPU. What is about memory is in bind_memory.c. */
#include "kernel/candidate.h"

#include "kernel/plan.h"
#include <inttypes.h>
#include <string.h>

#define GRID_X_MAX  INT64_C(0x7fffffff)
#define GRID_YZ_MAX 65535
#define BLOCK_MAX   1024
#define BLOCK_Z_MAX 64
#define SHARED_MAX  (INT64_C(227) << 10)
#define CLUSTER_MAX 8 /* blocks: what every GPU with clusters can do */

bool bind_value(struct binding_run *b, const struct expr *e, int64_t *out) {
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
