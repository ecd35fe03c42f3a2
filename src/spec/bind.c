/* Numbers for dimensions: extents, strides, sizes, distributions; then the proof of all reads. */
#include "spec/bind.h"

#include "base/checked.h"
#include "spec/bounds.h"
#include <math.h>

#define BYTES_MOST ((size_t)1 << 45)

/* Over dimensions alone every interval is a point. */
bool expr_eval_dims(const struct expr *e, const int64_t *dims, int64_t *out) {
    struct inst in = {.dims = (int64_t *)dims};
    struct ranges r = {.in = &in};
    struct range v;
    if (range_of(&r, e, &v) != RANGE_OK || v.lo != v.hi)
        return false;
    *out = v.lo;
    return true;
}

static double real_call(enum function f, const double *a) {
    switch (f) {
    case FUNCTION_EXP:
        return exp(a[0]);
    case FUNCTION_LOG:
        return log(a[0]);
    case FUNCTION_SQRT:
        return sqrt(a[0]);
    case FUNCTION_RSQRT:
        return 1 / sqrt(a[0]);
    case FUNCTION_ABS:
        return fabs(a[0]);
    case FUNCTION_FLOOR:
        return floor(a[0]);
    case FUNCTION_POW:
        return pow(a[0], a[1]);
    case FUNCTION_MAXIMUM:
        return a[0] > a[1] ? a[0] : a[1];
    case FUNCTION_MINIMUM:
        return a[0] < a[1] ? a[0] : a[1];
    default:
        return NAN;
    }
}

static bool real_node(const struct expr *e, const double *a, double *out) {
    switch (e->kind) {
    case EXPR_NEG:
        *out = -a[0];
        return true;
    case EXPR_ADD:
        *out = a[0] + a[1];
        return true;
    case EXPR_SUB:
        *out = a[0] - a[1];
        return true;
    case EXPR_MUL:
        *out = a[0] * a[1];
        return true;
    case EXPR_DIV:
        *out = a[0] / a[1];
        return true;
    case EXPR_CALL:
        *out = real_call(e->function, a);
        return true;
    default:
        return false;
    }
}

bool expr_eval_real(const struct expr *e, const int64_t *dims, double *out) {
    double a[3] = {0};
    int64_t whole;
    if (e->kind == EXPR_NUMBER)
        *out = e->number;
    else if (expr_eval_dims(e, dims, &whole))
        *out = (double)whole;
    else {
        for (size_t i = 0; i < e->nargs && i < 3; i++)
            if (!expr_eval_real(e->args[i], dims, &a[i]))
                return false;
        if (!real_node(e, a, out))
            return false;
    }
    return isfinite(*out);
}

static bool fail_at(const struct task *t, size_t at, size_t len, struct err *err, const char *hint,
                    const char *what) {
    return err_at(err, t->file, t->text, at, len, hint, "%s", what);
}

static const struct binding *setting(const struct binding *set, size_t n, str name) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(set[i].name, name))
            return &set[i];
    return NULL;
}

static bool check_settings(const struct task *t, const struct binding *set, size_t n,
                           struct err *err) {
    for (size_t i = 0; i < n; i++) {
        size_t d = 0;
        while (d < t->ndims && !str_eq(t->dims[d].name, set[i].name))
            d++;
        if (d == t->ndims)
            return err_set(err, ERR_INPUT, "task %.*s has no dimension '%.*s'", STR_ARG(t->name),
                           STR_ARG(set[i].name));
        if (t->dims[d].derived)
            return err_set(err, ERR_INPUT,
                           "dimension '%.*s' of task %.*s follows from others and cannot be set",
                           STR_ARG(set[i].name), STR_ARG(t->name));
        if (set[i].value < 1)
            return err_set(err, ERR_INPUT, "dimension '%.*s' must be at least 1",
                           STR_ARG(set[i].name));
    }
    return true;
}

static bool bind_dims(const struct task *t, const struct binding *set, size_t n, int64_t *dims,
                      struct err *err) {
    for (size_t i = 0; i < t->ndims; i++) {
        const struct dim *d = &t->dims[i];
        const struct binding *b = setting(set, n, d->name);
        if (b)
            dims[i] = b->value;
        else if (!expr_eval_dims(d->value, dims, &dims[i]))
            return fail_at(t, d->at, d->len, err, NULL,
                           "the dimension divides by zero or does not fit 64 bits");
        if (dims[i] < 1)
            return err_at(err, t->file, t->text, d->at, d->len, NULL,
                          "the dimension '%.*s' is %lld; it must be at least 1", STR_ARG(d->name),
                          (long long)dims[i]);
    }
    return true;
}

static bool bind_tensor(const struct task *t, size_t i, const int64_t *dims, struct bound_tensor *b,
                        size_t *total, struct err *err) {
    const struct tensor *x = &t->tensors[i];
    size_t size = dtype_info(x->dtype)->bytes;
    b->count = 1;
    for (size_t k = 0; k < x->rank; k++) {
        const struct expr *e = x->extent[k];
        if (!expr_eval_dims(e, dims, &b->extent[k]))
            return fail_at(t, e->at, e->len, err, NULL,
                           "the extent divides by zero or does not fit 64 bits");
        if (b->extent[k] < 1)
            return err_at(err, t->file, t->text, e->at, e->len, NULL,
                          "an extent of %lld; it must be at least 1", (long long)b->extent[k]);
    }
    for (size_t k = x->rank; k-- > 0;) {
        b->stride[k] = b->count;
        if (!mul_i64(b->count, b->extent[k], &b->count))
            return fail_at(t, x->at, x->len, err, NULL, "the tensor's size does not fit 64 bits");
    }
    if (!mul_size((size_t)b->count, size, &b->bytes) || !add_size(*total, b->bytes, total) ||
        *total > BYTES_MOST)
        return fail_at(t, x->at, x->len, err, "make dimensions smaller",
                       "the tensors up to here take more than 2^45 bytes");
    return true;
}

void dtype_limits(enum dtype t, double *lo, double *hi) {
    const struct dtype_info *d = dtype_info(t);
    double bits = 8.0 * (double)d->bytes;
    *lo = d->kind == 'u' || d->kind == 'b' ? 0 : -exp2(bits - 1);
    *hi = d->kind == 'b' ? 1 : exp2(d->kind == 'u' ? bits : bits - 1) - 1;
}

void dist_numbers(const struct inst *in, size_t tensor, double *a, double *b) {
    const struct dist *d = &in->task->tensors[tensor].dist;
    *a = *b = 0;
    if (d->a)
        BUG_IF(!expr_eval_real(d->a, in->dims, a));
    if (d->b)
        BUG_IF(!expr_eval_real(d->b, in->dims, b));
}

/* NULL: the numbers make sense. */
static const char *dist_fault(const struct tensor *x, double a, double b) {
    double lo, hi;
    dtype_limits(x->dtype, &lo, &hi);
    switch (x->dist.kind) {
    case DIST_UNIFORM:
        return a <= b ? NULL : "uniform(a, b) needs a <= b";
    case DIST_NORMAL:
        return b >= 0 ? NULL : "normal(mean, deviation) needs a deviation of at least 0";
    case DIST_BERNOULLI:
        return a >= 0 && a <= 1 ? NULL : "bernoulli(p) needs a probability from 0 to 1";
    case DIST_RANDINT:
        if (a != floor(a) || b != floor(b) || !(a < b))
            return "randint(lo, hi) needs integers lo < hi";
        if (fabs(a) > 0x1p53 || fabs(b) > 0x1p53)
            return "randint(lo, hi) needs integers of at most 2^53";
        return dtype_info(x->dtype)->kind == 'f' || (a >= lo && b - 1 <= hi)
                   ? NULL
                   : "randint makes integers that the tensor's type does not hold";
    default:
        return NULL;
    }
}

static bool check_dist(const struct task *t, const struct tensor *x, const int64_t *dims,
                       struct err *err) {
    double a = 0, b = 0;
    const struct expr *args[2] = {x->dist.a, x->dist.b};
    double *to[2] = {&a, &b};
    for (int i = 0; i < 2; i++)
        if (args[i] && !expr_eval_real(args[i], dims, to[i]))
            return fail_at(t, args[i]->at, args[i]->len, err,
                           "+ - * / sqrt exp log pow of dimensions",
                           "the distribution's number cannot be evaluated or is not finite");
    const char *fault = dist_fault(x, a, b);
    return !fault || fail_at(t, args[0]->at, args[0]->len, err, NULL, fault);
}

bool task_bind(const struct task *t, const struct binding *set, size_t n, struct arena *a,
               struct inst **out, struct err *err) {
    struct inst *in = arena_new_of(a, struct inst);
    size_t total = 0;
    in->task = t;
    in->dims = arena_array(a, int64_t, t->ndims + 1);
    in->tensors = arena_array(a, struct bound_tensor, t->ntensors);
    if (!check_settings(t, set, n, err) || !bind_dims(t, set, n, in->dims, err))
        return false;
    for (size_t i = 0; i < t->ntensors; i++)
        if (!bind_tensor(t, i, in->dims, &in->tensors[i], &total, err) ||
            (tensor_is_input(&t->tensors[i]) && !check_dist(t, &t->tensors[i], in->dims, err)))
            return false;
    for (size_t i = 0; i < t->nstatements; i++)
        if (!bounds_check(in, &t->statements[i], a, err))
            return false;
    *out = in;
    return true;
}

bool task_bind_check(const struct task *t, size_t check, struct arena *a, struct inst **out,
                     struct err *err) {
    BUG_IF(check >= t->nchecks);
    return task_bind(t, t->checks[check].set, t->checks[check].n, a, out, err);
}

str inst_label(const struct inst *in, struct arena *a) {
    str label = {"", 0};
    for (size_t i = 0; i < in->task->ndims; i++) {
        const struct dim *d = &in->task->dims[i];
        if (!d->derived)
            label = arena_printf(a, "%.*s%s%.*s=%lld", STR_ARG(label), label.n ? " " : "",
                                 STR_ARG(d->name), (long long)in->dims[i]);
    }
    return label;
}

bool tensor_is_input(const struct tensor *t) {
    return t->role == TENSOR_IN || t->role == TENSOR_PARAM;
}
