/* The small tables of the language: element types, accuracy classes, functions. */
#include "spec/task.h"

static const struct dtype_info dtypes[DTYPE_COUNT] = {
#define DTYPE(id, name, bytes, cuda, npy, kind) {name, bytes, cuda, npy, kind},
#include "spec/dtype.def"
#undef DTYPE
};

const struct dtype_info *dtype_info(enum dtype t) {
    BUG_IF((unsigned)t >= DTYPE_COUNT);
    return &dtypes[t];
}

int dtype_digits(enum dtype t) {
    const struct dtype_info *d = dtype_info(t);
    return d->kind == 'f' && d->bytes < 8 ? 9 : 17;
}

bool dtype_find(str name, enum dtype *out) {
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (str_is(name, dtypes[i].name)) {
            *out = (enum dtype)i;
            return true;
        }
    return false;
}

static const struct {
    const char *name;
    double unit;
} accuracies[ACCURACY_COUNT] = {
    [ACCURACY_FP32] = {"fp32", 0x1p-24},
    [ACCURACY_TF32] = {"tf32", 0x1p-11},
    [ACCURACY_F16] = {"f16", 0x1p-11},
    [ACCURACY_BF16] = {"bf16", 0x1p-8},
};

const char *accuracy_name(enum accuracy a) {
    BUG_IF((unsigned)a >= ACCURACY_COUNT);
    return accuracies[a].name;
}

double accuracy_unit(enum accuracy a) {
    BUG_IF((unsigned)a >= ACCURACY_COUNT);
    return accuracies[a].unit;
}

static const struct {
    const char *name;
    int args;
} functions[FUNCTION_COUNT] = {
#define FUNCTION(id, name, args) {name, args},
#include "spec/function.def"
#undef FUNCTION
};

const char *function_name(enum function f) {
    BUG_IF((unsigned)f >= FUNCTION_COUNT);
    return functions[f].name;
}

int function_args(enum function f) {
    BUG_IF((unsigned)f >= FUNCTION_COUNT);
    return functions[f].args;
}

size_t expr_nparts(const struct expr *e) {
    const struct reduce *r = e->reduce;
    return e->nargs + (r ? (r->guard != NULL) + 2 * r->nvars : 0);
}

const struct expr *expr_part(const struct expr *e, size_t i) {
    const struct reduce *r = e->reduce;
    if (i < e->nargs)
        return e->args[i];
    i -= e->nargs;
    if (r->guard && i == 0)
        return r->guard;
    i -= r->guard != NULL;
    return i % 2 ? r->vars[i / 2].hi : r->vars[i / 2].lo;
}
