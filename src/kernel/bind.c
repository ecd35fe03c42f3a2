/* The plan's arithmetic for one instance: which requires hold, and the numbers of every launch
 * within the limits that CUDA sets for any GPU. */
#include "kernel/candidate.h"

#include "kernel/plan.h"
#include <inttypes.h>

#define GRID_X_MAX  INT64_C(0x7fffffff)
#define GRID_YZ_MAX 65535
#define BLOCK_MAX   1024
#define BLOCK_Z_MAX 64
#define SHARED_MAX  (INT64_C(227) << 10)

struct binding_run {
    const struct candidate *c;
    const struct inst *in;
    struct err *err;
    int64_t lets[CANDIDATE_MAX_LINES];
    size_t nlets; /* how many have a value */
};

static bool value_of(struct binding_run *b, const struct plan_expr *e, int64_t *out) {
    const struct plan_expr *where = NULL;
    const char *why = NULL;
    if (plan_expr_eval(e, b->in->dims, b->lets, out, &where, &why))
        return true;
    return err_at(b->err, b->c->file, b->c->source, where->at, where->len, NULL,
                  "no value for this shape: %s", why);
}

/* Lets in their order, those written before `at`: a require before a let guards its arithmetic. */
static bool lets_until(struct binding_run *b, size_t at) {
    for (; b->nlets < b->c->nlets && b->c->lets[b->nlets].value->at < at; b->nlets++)
        if (!value_of(b, b->c->lets[b->nlets].value, &b->lets[b->nlets]))
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
        if (!lets_until(&b, r->condition->at) || !value_of(&b, r->condition, &holds))
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

static bool bind_extent(struct binding_run *b, struct plan_expr *const from[3],
                        const struct extent_rule *rule, uint32_t out[3]) {
    for (int i = 0; i < 3; i++) {
        int64_t v = 1;
        if (from[i] && !value_of(b, from[i], &v))
            return false;
        if (v < 1 || v > rule->most[i])
            return err_at(b->err, b->c->file, b->c->source, from[i]->at, from[i]->len, NULL,
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
    return err_at(b->err, b->c->file, b->c->source, l->block[0]->at, l->block[0]->len, NULL,
                  "a block of %" PRIu32 "x%" PRIu32 "x%" PRIu32 " has %" PRIu64
                  " threads, more than %d",
                  out->block[0], out->block[1], out->block[2], threads, BLOCK_MAX);
}

static bool bind_shared(struct binding_run *b, const struct plan_launch *l,
                        struct bound_launch *out) {
    int64_t v = 0;
    if (l->shared && !value_of(b, l->shared, &v))
        return false;
    if (v < 0 || v > SHARED_MAX)
        return err_at(b->err, b->c->file, b->c->source, l->shared->at, l->shared->len, NULL,
                      "%" PRId64 " bytes of dynamic shared memory, it must be from 0 to %" PRId64,
                      v, SHARED_MAX);
    out->shared = (uint64_t)v;
    return true;
}

static bool bind_launch(struct binding_run *b, const struct plan_launch *l, struct arena *a,
                        struct bound_launch *out) {
    static const struct extent_rule grid = {"grid", {GRID_X_MAX, GRID_YZ_MAX, GRID_YZ_MAX}};
    out->kernel = l->kernel;
    out->nargs = l->nargs;
    out->args = arena_array(a, struct bound_arg, l->nargs);
    if (!bind_extent(b, l->grid, &grid, out->grid) || !bind_block(b, l, out) ||
        !bind_shared(b, l, out))
        return false;
    for (size_t i = 0; i < l->nargs; i++) {
        out->args[i].tensor = l->args[i].tensor;
        if (l->args[i].tensor < 0 && !value_of(b, l->args[i].value, &out->args[i].value))
            return false;
    }
    return true;
}

bool plan_bind(const struct candidate *c, const struct inst *in, struct arena *a,
               struct bound_plan *out, struct err *err) {
    struct binding_run b = {.c = c, .in = in, .err = err};
    if (!lets_until(&b, SIZE_MAX))
        return false;
    out->nlaunches = c->nlaunches;
    out->launches = arena_array(a, struct bound_launch, c->nlaunches);
    for (size_t i = 0; i < c->nlaunches; i++)
        if (!bind_launch(&b, &c->launches[i], a, &out->launches[i]))
            return false;
    return true;
}
