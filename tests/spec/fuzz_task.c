/* Any bytes as a task file: parsed, bound at its own sizes and at its checks, shown, costed, and,
 * where it is small, filled with every kind of data and evaluated, and searched for outputs that
 * need no computing. */
#include "spec/bounds.h"
#include "spec/cost.h"
#include "spec/data.h"
#include "spec/reference.h"
#include "spec/trivial.h"

enum { ELEMENTS_MOST = 4096, WORK_MOST = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Nodes that `times` evaluations of the expression visit, at the most. */
static double work(const struct ranges *r, const struct expr *e, double times) {
    struct ranges inner = *r;
    double sum = times;
    for (size_t i = 0; e->reduce && i < e->reduce->nvars; i++) {
        bool some = false;
        if (ranges_enter_var(&inner, &e->reduce->vars[i], &some) == RANGE_OK && some) {
            struct range v = inner.index[e->reduce->vars[i].var];
            times *= (double)v.hi - (double)v.lo + 1;
        }
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        sum += work(&inner, expr_part(e, i), times);
    return sum;
}

static double work_of(const struct inst *in, const struct statement *list, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        struct ranges r = ranges_of(in, &list[i]);
        sum += work(&r, list[i].body, (double)in->tensors[list[i].tensor].count);
    }
    return sum;
}

static bool is_small(const struct inst *in) {
    const struct task *t = in->task;
    int64_t total = 0;
    for (size_t i = 0; i < t->ntensors; i++)
        if (in->tensors[i].count > ELEMENTS_MOST || (total += in->tensors[i].count) > ELEMENTS_MOST)
            return false;
    return work_of(in, t->statements, t->nstatements) +
               work_of(in, t->definitions, t->ndefinitions) <=
           WORK_MOST;
}

static void evaluate(const struct inst *in, enum data_kind kind) {
    const struct task *t = in->task;
    void *inputs[TASK_MAX_TENSORS] = {0};
    struct reference *refs = NULL;
    size_t n = 0;
    double peak;
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_is_input(&t->tensors[i])) {
            inputs[i] = mem_alloc(in->tensors[i].bytes);
            data_fill(in, NULL, i, kind, 1, 0, in->tensors[i].count, inputs[i]);
        }
    if (reference_eval(in, (const void *const *)inputs, 1, &refs, &n, &peak, NULL))
        for (size_t i = 0; i < n; i++) {
            struct comparison c;
            void *got = mem_alloc(in->tensors[refs[i].tensor].bytes);
            data_store(t->tensors[refs[i].tensor].dtype, refs[i].value, refs[i].count, got);
            reference_compare(in, &refs[i], got, 1, &c);
            BUG_IF(!c.pass); /* the reference, stored, satisfies itself */
            mem_free(got);
        }
    reference_release(refs, n);
    for (size_t i = 0; i < t->ntensors; i++)
        mem_free(inputs[i]);
}

static void exercise(const struct inst *in) {
    struct cost c;
    struct features f;
    struct buf b;
    buf_init(&b, (size_t)4 << 20);
    cost_of(in, &c);
    features_of(in, &f);
    task_show(in, &b);
    buf_release(&b);
    for (int k = 0; is_small(in) && k < DATA_COUNT; k++)
        evaluate(in, (enum data_kind)k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *a = arena_new((size_t)1 << 30);
    struct task *t;
    struct inst *in;
    struct err err = {0};
    if (size <= 8192 && task_parse(S("fuzz.task"), (str){(const char *)data, size}, a, &t, &err)) {
        if (task_bind(t, NULL, 0, a, &in, &err)) {
            exercise(in);
            if (is_small(in) && !t->nchecks)
                task_check_trivial(in, 1, &err);
        }
        for (size_t i = 0; i < t->nchecks && i < 2; i++)
            if (task_bind_check(t, i, a, &in, &err))
                exercise(in);
    }
    arena_free(a);
    return 0;
}
