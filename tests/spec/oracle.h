/* A second opinion on the reference: every statement element by element, by the tree-walking
 * evaluator that makes defined inputs. It shares no code with the blocks of lanes. */
#ifndef TESTS_SPEC_ORACLE_H
#define TESTS_SPEC_ORACLE_H

#include "fixture.h"
#include "spec/convert_value.h"
#include "spec/scalar.h"

struct oracle {
    const struct fixture *f;
    double *value[TASK_MAX_TENSORS]; /* of lets and outputs */
};

static inline double oracle_read(void *ctx, size_t tensor, int64_t linear) {
    const struct oracle *o = ctx;
    const struct tensor *t = &o->f->task->tensors[tensor];
    size_t size = dtype_info(t->dtype)->bytes;
    double v;
    if (t->role == TENSOR_LET)
        return o->value[tensor][linear];
    data_load(t->dtype, (const char *)o->f->inputs[tensor] + (size_t)linear * size, 1, &v);
    return v;
}

static inline void oracle_statement(struct oracle *o, const struct statement *s) {
    const struct inst *in = o->f->in;
    const struct tensor *t = &in->task->tensors[s->tensor];
    const struct bound_tensor *b = &in->tensors[s->tensor];
    struct scalar sc = {.in = in, .read = oracle_read, .ctx = o};
    if (!o->value[s->tensor])
        o->value[s->tensor] = mem_alloc((size_t)b->count * sizeof(double));
    for (int64_t i = 0; i < b->count; i++) {
        bool ours = true;
        for (size_t k = 0; k < t->rank; k++) {
            int64_t at = i / b->stride[k] % b->extent[k], constant = 0;
            if (s->position[k] >= 0)
                sc.var[s->position[k]] = at;
            else
                ours =
                    ours && expr_eval_dims(s->constant[k], in->dims, &constant) && constant == at;
        }
        if (!ours)
            continue;
        double v = scalar_eval(&sc, s->body);
        bool rounds = t->role == TENSOR_LET && dtype_info(t->dtype)->kind == 'f';
        o->value[s->tensor][i] = rounds ? round_to(t->dtype, v) : v;
    }
}

/* The largest difference between oracle and reference, over the magnitude of what is compared
 * (at least `floor`); infinite where one of them is not finite and the other is. Elements that the
 * reference leaves unjudged are counted instead. */
static inline double oracle_compare(const struct fixture *f, double floor, size_t *unjudged) {
    struct oracle o = {.f = f};
    double worst = 0;
    *unjudged = 0;
    for (size_t i = 0; i < f->task->nstatements; i++)
        oracle_statement(&o, &f->task->statements[i]);
    for (size_t r = 0; r < f->nrefs; r++)
        for (size_t i = 0; i < f->refs[r].count; i++) {
            double v = f->refs[r].value[i], w = o.value[f->refs[r].tensor][i];
            if (isinf(f->refs[r].estimate[i])) {
                ++*unjudged;
                continue;
            }
            if (v == w || (isnan(v) && isnan(w)))
                continue;
            /* An output beyond its type's range is infinite in the reference. */
            if (isinf(v) && v * w > 0 && fabs(w) > 65504)
                continue;
            double off = isfinite(v) && isfinite(w) ? fabs(v - w) / fmax(fabs(w), floor) : INFINITY;
            worst = off > worst ? off : worst;
        }
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        mem_free(o.value[i]);
    return worst;
}

#endif
