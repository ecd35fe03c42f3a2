/* A single build, for commands that compile one kernel. */
#include "kernel/build.h"

struct waiting {
    struct arena *arena;
    struct build *to;
    bool done;
};

static void keep_build(void *ctx, const struct build *b) {
    struct waiting *w = ctx;
    struct build *to = w->to;
    *to = *b;
    to->log = arena_str(w->arena, b->log);
    to->ptx = arena_str(w->arena, b->ptx);
    to->cubin = arena_str(w->arena, b->cubin);
    to->kernels = arena_array(w->arena, struct kernel_facts, b->nkernels);
    for (size_t i = 0; i < b->nkernels; i++) {
        to->kernels[i] = b->kernels[i];
        to->kernels[i].name = arena_str(w->arena, b->kernels[i].name);
    }
    w->done = true;
}

bool build_once(const struct nvrtc_root *root, const struct build_pool_options *o,
                const struct build_request *r, struct arena *a, struct build *out,
                struct err *err) {
    struct waiting w = {.arena = a, .to = out};
    struct loop *l = loop_new(err);
    struct build_pool *pool = l ? build_pool_new(l, root, o, err) : NULL;
    bool ok = pool && build_submit(pool, r, keep_build, &w, err);
    while (ok && !w.done)
        ok = loop_step(l, -1, err);
    build_pool_free(pool);
    loop_free(l);
    if (ok && out->no_compiler)
        ok = err_set(err, ERR_ENV, "%.*s", STR_ARG(out->log));
    return ok;
}
