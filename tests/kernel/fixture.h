/* What several tests of this room need: a task, a candidate for it, and a build that waits. */
#ifndef TESTS_KERNEL_FIXTURE_H
#define TESTS_KERNEL_FIXTURE_H

#include "base/loop.h"
#include "kernel/build.h"
#include "kernel/candidate.h"
#include <stdlib.h>

#define FIXTURE_TASK                                                                               \
    "task demo \"A demonstration\"\n"                                                              \
    "dim N = 1000, M = 7\n"                                                                        \
    "in x[N] : f32 ~ uniform(0,1)\n"                                                               \
    "param w[M] : f32 ~ uniform(0,1)\n"                                                            \
    "out y[N] : f32\n"                                                                             \
    "let t[i] = x[i] + 1\n"                                                                        \
    "y[i] = t[i] * w[0]\n"

static inline const struct task *fixture_task(const char *text, struct arena *a) {
    struct task *t = NULL;
    struct err err = {0};
    if (!task_parse(S("demo.task"), str_view(text), a, &t, &err)) {
        printf("# %s\n", err.text);
        exit(1);
    }
    return t;
}

static inline struct inst *fixture_inst(const struct task *t, int64_t n, struct arena *a) {
    struct inst *in = NULL;
    struct err err = {0};
    struct binding set = {S("N"), n};
    if (!task_bind(t, &set, 1, a, &in, &err)) {
        printf("# %s\n", err.text);
        exit(1);
    }
    return in;
}

static inline struct candidate *fixture_candidate(const struct task *t, const char *source,
                                                  struct arena *a, struct err *err) {
    struct candidate *c = NULL;
    return candidate_parse(S("k.cu"), str_view(source), t, a, &c, err) ? c : NULL;
}

/* Copies a build into an arena and counts. */
struct fixture_build {
    struct arena *a;
    struct build b;
    int calls;
    const char *arch;     /* NULL: sm_90a */
    const char *ptx_seen; /* where the bytes lay during the call */
};

static inline void fixture_done(void *ctx, const struct build *b) {
    struct fixture_build *f = ctx;
    f->calls++;
    f->b = *b;
    f->ptx_seen = b->ptx.p;
    f->b.log = arena_str(f->a, b->log);
    f->b.ptx = arena_str(f->a, b->ptx);
    f->b.cubin = arena_str(f->a, b->cubin);
    f->b.kernels = arena_array(f->a, struct kernel_facts, b->nkernels);
    for (size_t i = 0; i < b->nkernels; i++) {
        f->b.kernels[i] = b->kernels[i];
        f->b.kernels[i].name = arena_str(f->a, b->kernels[i].name);
    }
}

/* Submits and turns the loop until it is done. */
static inline bool fixture_compile(struct loop *l, struct build_pool *p, str unit, bool cute,
                                   struct fixture_build *f) {
    struct err err = {0};
    struct build_request r = {.unit = unit, .arch = "sm_90a", .fmad = true, .cute = cute};
    r.arch = f->arch ? f->arch : r.arch;
    f->calls = 0;
    if (!build_submit(p, &r, fixture_done, f, &err)) {
        printf("# %s\n", err.text);
        return false;
    }
    uint64_t until = clock_ms() + 120000;
    while (!f->calls && clock_ms() < until && loop_step(l, 1000, &err))
        ;
    return f->calls == 1;
}

/* NULL: there is NVRTC. Otherwise why not. */
static inline const char *fixture_nvrtc(struct nvrtc_root *root) {
    static char why[512];
    struct err err = {0};
    char cutlass[512];
    const char *source = getenv("SOURCE_ROOT");
    snprintf(cutlass, sizeof cutlass, "%s/.deps/cutlass", source ? source : ".");
    setenv("CUTEPILOT_CUTLASS", cutlass, 0);
    if (nvrtc_find(root, &err) && nvrtc_probe(root, &err))
        return NULL;
    snprintf(why, sizeof why, "%.400s", err.text);
    for (char *p = why; *p; p++)
        *p = *p == '\n' ? ' ' : *p;
    return why;
}

#endif
