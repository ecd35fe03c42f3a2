/* A bound task with inputs and its reference, for the tests of this room. */
#ifndef TESTS_SPEC_FIXTURE_H
#define TESTS_SPEC_FIXTURE_H

#include "base/arena.h"
#include "spec/data.h"
#include "spec/reference.h"
#include "spec/task.h"

#include "tap.h"
#include <stdlib.h>

struct fixture {
    struct arena *a;
    struct err err;
    struct task *task;
    struct inst *in;
    struct data_scale scale;
    void *inputs[TASK_MAX_TENSORS];
    struct reference *refs;
    size_t nrefs;
};

static inline bool fixture_text(struct fixture *f, const char *text) {
    *f = (struct fixture){.a = arena_new((size_t)64 << 20)};
    for (int i = 0; i < DATA_COUNT; i++)
        f->scale.factor[i] = 1;
    bool ok = task_parse(S("t.task"), str_view(text), f->a, &f->task, &f->err) &&
              task_bind(f->task, NULL, 0, f->a, &f->in, &f->err);
    CHECKF(ok, "%s", f->err.text);
    return ok;
}

/* A smoke task at its `check` line. */
static inline bool fixture_smoke(struct fixture *f, const char *name, size_t check) {
    const char *root = getenv("SOURCE_ROOT");
    *f = (struct fixture){.a = arena_new((size_t)64 << 20)};
    const char *path = arena_printf(f->a, "%s/tasks/smoke/%s.task", root ? root : ".", name).p;
    bool ok = task_load(path, f->a, &f->task, &f->err) &&
              task_bind_check(f->task, check, f->a, &f->in, &f->err) &&
              data_scale_find(f->in, 1, &f->scale, &f->err);
    CHECKF(ok, "%s", f->err.text);
    return ok;
}

static inline void fixture_forget(struct fixture *f) {
    reference_release(f->refs, f->nrefs);
    f->refs = NULL;
    f->nrefs = 0;
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++) {
        mem_free(f->inputs[i]);
        f->inputs[i] = NULL;
    }
}

static inline bool fixture_eval(struct fixture *f, unsigned threads) {
    reference_release(f->refs, f->nrefs);
    f->refs = NULL;
    f->nrefs = 0;
    bool ok = reference_eval(f->in, (const void *const *)f->inputs, threads, &f->refs, &f->nrefs,
                             NULL, &f->err);
    CHECKF(ok, "%s", f->err.text);
    return ok;
}

static inline bool fixture_data(struct fixture *f, enum data_kind kind, uint64_t seed) {
    fixture_forget(f);
    for (size_t i = 0; i < f->task->ntensors; i++) {
        if (!tensor_is_input(&f->task->tensors[i]))
            continue;
        f->inputs[i] = mem_alloc(f->in->tensors[i].bytes);
        data_fill(f->in, &f->scale, i, kind, seed, 0, f->in->tensors[i].count, f->inputs[i]);
    }
    return fixture_eval(f, 2);
}

/* An input given as doubles. */
static inline void fixture_set(struct fixture *f, const char *name, const double *v, size_t n) {
    int t = tensor_find(f->task, str_view(name));
    CHECK(t >= 0 && (size_t)f->in->tensors[t].count == n);
    mem_free(f->inputs[t]);
    f->inputs[t] = mem_alloc(f->in->tensors[t].bytes);
    data_store(f->task->tensors[t].dtype, v, n, f->inputs[t]);
}

static inline void fixture_end(struct fixture *f) {
    fixture_forget(f);
    arena_free(f->a);
}

#endif
