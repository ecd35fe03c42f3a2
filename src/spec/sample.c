#include "spec/sample.h"

#include "spec/bounds.h"

enum {
    SAMPLE_ELEMENTS = 1 << 16,
    SAMPLE_POINTS = 1 << 18,
};

/* How many points an evaluation visits: those that a guard rejects, too. */
static double points_of(const struct ranges *r, const struct expr *e, double points) {
    struct ranges inner = *r;
    double sum = points;
    if (e->kind == EXPR_REDUCE) {
        if (!ranges_enter(&inner, e->reduce))
            return points;
        for (size_t i = 0; i < e->reduce->nvars; i++) {
            struct range v = inner.index[e->reduce->vars[i].var];
            points *= (double)(v.hi - v.lo) + 1;
        }
    }
    for (size_t i = 0; i < e->nargs; i++)
        if (expr_reads(e->args[i]) && e->kind != EXPR_READ)
            sum += points_of(&inner, e->args[i], points);
    return sum;
}

bool inst_is_small(const struct inst *in) {
    const struct task *t = in->task;
    int64_t elements = 0;
    double points = 0;
    for (size_t i = 0; i < t->ntensors; i++)
        elements += in->tensors[i].count;
    for (size_t i = 0; i < t->nstatements && elements <= SAMPLE_ELEMENTS; i++) {
        struct ranges r = ranges_of(in, &t->statements[i]);
        double count = (double)in->tensors[t->statements[i].tensor].count;
        points += points_of(&r, t->statements[i].body, count) / 4;
    }
    return elements <= SAMPLE_ELEMENTS && points <= SAMPLE_POINTS;
}

static struct inst *cut_to(const struct inst *in, int64_t most, struct arena *a) {
    const struct task *t = in->task;
    struct binding set[TASK_MAX_DIMS];
    struct inst *small;
    size_t n = 0;
    for (size_t i = 0; i < t->ndims; i++)
        if (!t->dims[i].derived)
            set[n++] = (struct binding){t->dims[i].name, in->dims[i] < most ? in->dims[i] : most};
    return task_bind(t, set, n, a, &small, NULL) ? small : NULL;
}

const struct inst *inst_sample(const struct inst *in, struct arena *a) {
    const struct inst *least = in;
    int64_t fewest = INT64_MAX;
    if (inst_is_small(in))
        return in;
    for (int64_t cut = 512; cut >= 4; cut /= 2) {
        const struct inst *small = cut_to(in, cut, a);
        if (small && inst_is_small(small))
            return small;
    }
    for (size_t i = 0; i < in->task->nchecks; i++) {
        struct inst *small;
        int64_t total = 0;
        if (!task_bind_check(in->task, i, a, &small, NULL))
            continue;
        for (size_t k = 0; k < in->task->ntensors; k++)
            total += small->tensors[k].count;
        if (total < fewest) {
            fewest = total;
            least = small;
        }
    }
    return least;
}
