/* What judge and device need on a GPU besides the candidate: the task's reference kernels and the
 * device's harness, compiled once for an evaluator. The pool compiles them; this waits for both
 * and says so. Owns their cubins. */
#ifndef EVAL_SUPPORT_H
#define EVAL_SUPPORT_H

#include "kernel/build.h"
#include "spec/task.h"

struct support_events {
    void *ctx;
    void (*ready)(void *ctx); /* both are there; once */
    void (*broken)(void *ctx, const struct err *why);
};

struct support {
    struct support_events events;
    struct arena *arena;
    str oracle, harness; /* cubins; empty until they are built */
    unsigned open;       /* of them, still being built */
};

/* s is zeroed by the caller and outlives the pool's work. */
bool support_build(struct support *s, struct build_pool *pool, const struct task *t,
                   const char *arch, const struct support_events *ev, struct err *err);
void support_release(struct support *s);

#endif
