/* How the work of each statement and the size of each tensor change when one dimension is doubled.
 */
#include "spec/growth.h"

#include "spec/tally.h"
#include <math.h>

/* Fewer operations for each element of the inputs and outputs are not worth a word. */
#define WORTH_SAYING 32

struct sizes {
    struct tally work[TASK_MAX_STATEMENTS]; /* of each statement */
    double paired;                          /* operations that pair elements, of the task */
};

static void sizes_of(const struct inst *in, struct sizes *out) {
    tally_statements(in, out->work);
    out->paired = 0;
    for (size_t i = 0; i < in->task->nstatements; i++)
        out->paired += out->work[i].paired;
}

static double operations_of(const struct tally *t) {
    return t->plain + t->special;
}

static double elements_of(const struct inst *in) {
    double n = 0;
    for (size_t i = 0; i < in->task->ntensors; i++)
        n += tensor_has_memory(&in->task->tensors[i]) ? (double)in->tensors[i].count : 0;
    return n;
}

/* With which power something grows that is `more` after the dimension was multiplied by `times`. */
static double power_of(double less, double more, double times) {
    return less > 0 && more > 0 ? log(more / less) / log(times) : 0;
}

/* The largest power with which an input or output grows. */
static double data_power(const struct inst *less, const struct inst *more, double times) {
    double most = 0;
    for (size_t i = 0; i < less->task->ntensors; i++)
        if (tensor_has_memory(&less->task->tensors[i]))
            most = fmax(most, power_of((double)less->tensors[i].count,
                                       (double)more->tensors[i].count, times));
    return most;
}

/* The same shape with one dimension doubled; halved where the double does not fit the task. */
static bool change_dim(const struct inst *in, size_t dim, struct arena *a, struct inst **out,
                       double *times) {
    const struct task *t = in->task;
    struct binding set[TASK_MAX_DIMS];
    size_t n = 0, at = 0;
    struct err err = {0};
    for (size_t i = 0; i < t->ndims; i++) {
        if (t->dims[i].derived)
            continue;
        at = i == dim ? n : at;
        set[n++] = (struct binding){t->dims[i].name, in->dims[i]};
    }
    if (in->dims[dim] < 2 || in->dims[dim] > INT64_MAX / 2)
        return false;
    *times = 2;
    set[at].value = in->dims[dim] * 2;
    if (task_bind(t, set, n, a, out, &err))
        return true;
    set[at].value = in->dims[dim] / 2;
    *times = (double)set[at].value / (double)in->dims[dim];
    return task_bind(t, set, n, a, out, &err);
}

static bool is_suspect(const struct inst *in, const struct tally *work) {
    return operations_of(work) >= WORTH_SAYING * elements_of(in);
}

/* Of the suspects of one dimension, what takes most. */
static void look_at(const struct inst *in, const struct sizes *at, size_t dim,
                    struct sizes *changed, struct growth *out, bool *found) {
    struct arena *a = arena_new(256u << 20);
    struct inst *other;
    double times;
    if (change_dim(in, dim, a, &other, &times)) {
        double data = data_power(in, other, times);
        sizes_of(other, changed);
        double paired = power_of(at->paired, changed->paired, times);
        for (size_t i = 0; i < in->task->nstatements; i++) {
            double operations = operations_of(&at->work[i]);
            double work = power_of(operations, operations_of(&changed->work[i]), times);
            bool excessive = is_suspect(in, &at->work[i]) && data > 0.5 && work > data + 0.5 &&
                             work > paired + 0.5;
            if (excessive && (!*found || operations >= out->operations)) {
                *out = (struct growth){
                    i, dim, (int)lround(work), (int)lround(data), operations, elements_of(in)};
                *found = true;
            }
        }
    }
    arena_free(a);
}

bool growth_find(const struct inst *in, struct growth *out) {
    struct sizes *at = mem_alloc(2 * sizeof *at);
    bool suspect = false, found = false;
    sizes_of(in, at);
    for (size_t i = 0; i < in->task->nstatements; i++)
        suspect |= is_suspect(in, &at->work[i]);
    for (size_t d = 0; d < in->task->ndims && suspect; d++)
        if (!in->task->dims[d].derived)
            look_at(in, at, d, &at[1], out, &found);
    mem_free(at);
    return found;
}
