/* The expert: the roles answered from rules and code generators, at once and from inside the call.
 * One generator a workload; a new one is a file and a line of the table. */
#include "agent/expert/expert.h"
#include <string.h>

static generator_fn *const generators[WORKLOAD_COUNT] = {
    [WORKLOAD_POINTWISE] = pointwise_write,
};

struct expert {
    char *assets; /* NULL: the embedded ones */
};

static void expert_plan(void *self, const struct briefing *b, size_t n, struct rng r,
                        agent_plan_fn *done, void *ctx) {
    (void)self;
    struct strategy *list = mem_alloc((n ? n : 1) * sizeof *list);
    struct buf reason;
    buf_init(&reason, 4096);
    size_t found = planner_plan(b, n, r, list, &reason);
    done(ctx, list, found, buf_str(&reason), NULL);
    buf_release(&reason);
    mem_free(list);
}

static void expert_cross(void *self, const struct briefing *b, const struct parent *x,
                         const struct parent *y, struct rng r, agent_plan_fn *done, void *ctx) {
    (void)self;
    struct strategy child;
    struct buf reason;
    buf_init(&reason, 4096);
    planner_cross(b, x, y, r, &child, &reason);
    done(ctx, &child, 1, buf_str(&reason), NULL);
    buf_release(&reason);
}

static void expert_code(void *self, const struct briefing *b, const struct strategy *s,
                        agent_code_fn *done, void *ctx) {
    const struct expert *x = self;
    struct buf source;
    struct err err = {0};
    buf_init(&source, EXPERT_SOURCE_MAX);
    generator_fn *write = generators[b->features.workload];
    bool ok = write ? write(x->assets, b, s, &source, &err)
                    : err_set(&err, ERR_INPUT,
                              "the expert of this version writes pointwise kernels, "
                              "this is %s",
                              workload_name(b->features.workload));
    done(ctx, buf_str(&source), ok ? NULL : &err);
    buf_release(&source);
}

static void expert_free(void *self) {
    struct expert *x = self;
    mem_free(x->assets);
    mem_free(x);
}

bool expert_new(const char *assets, struct agent *out, struct err *err) {
    (void)err;
    struct expert *x = mem_alloc(sizeof *x);
    if (assets) {
        size_t n = strlen(assets) + 1;
        x->assets = mem_alloc(n);
        memcpy(x->assets, assets, n);
    }
    *out = (struct agent){"expert", x, expert_plan, expert_cross, expert_code, expert_free};
    return true;
}
