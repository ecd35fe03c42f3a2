/* Numbers for dimensions: extents, strides, sizes, distributions; then the proof of all reads. */
#include "spec/bind.h"

#include "base/checked.h"
#include "spec/bounds.h"
#include "spec/scalar.h"
#include <math.h>

#define BYTES_MOST ((size_t)1 << 45)

/* The parser lets neither reads nor reductions stand where this is used. */
bool expr_eval_real(const struct expr *e, const int64_t *dims, double *out) {
    struct inst in = {.dims = (int64_t *)dims};
    struct scalar s = {.in = &in};
    *out = scalar_eval(&s, e);
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

static bool unknown_dim(const struct task *t, str name, struct err *err) {
    struct buf names;
    buf_init(&names, 4096);
    for (size_t i = 0; i < t->ndims; i++)
        if (!t->dims[i].derived)
            buf_printf(&names, " %.*s", STR_ARG(t->dims[i].name));
    err_set(err, ERR_INPUT, "task %.*s has no dimension '%.*s'; those that can be set are:%.*s",
            STR_ARG(t->name), STR_ARG(name), STR_ARG(buf_str(&names)));
    buf_release(&names);
    return false;
}

static bool check_settings(const struct task *t, const struct binding *set, size_t n,
                           struct err *err) {
    for (size_t i = 0; i < n; i++) {
        int d = dim_find(t, set[i].name);
        if (d < 0)
            return unknown_dim(t, set[i].name, err);
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
            return fail_at(t, args[i]->at, args[i]->len, err, NULL,
                           "the distribution's number is not finite");
    const char *fault = dist_fault(x, a, b);
    return !fault || fail_at(t, args[0]->at, args[0]->len, err, NULL, fault);
}

static void narrow(struct bound_tensor *b, double lo, double hi) {
    if (lo > (double)b->lo)
        b->lo = (int64_t)lo;
    if (hi < (double)b->hi)
        b->hi = (int64_t)hi;
}

/* What the elements of an integer input can be. Only where places are computed from them is that
 * more than its type says: other integers are varied beyond their distribution. */
static void range_of_input(struct inst *in, size_t i) {
    const struct task *t = in->task;
    const struct tensor *x = &t->tensors[i];
    double a, b;
    if (!x->indexes || x->dist.kind == DIST_DEFINED)
        return;
    dist_numbers(in, i, &a, &b);
    if (x->dist.kind == DIST_RANDINT)
        narrow(&in->tensors[i], a, b - 1);
    else
        narrow(&in->tensors[i], x->dist.kind == DIST_ONES, x->dist.kind != DIST_ZEROS);
}

/* `assume t[i] >= 0`, on top of that. */
static void range_by_assumptions(struct inst *in, size_t i) {
    const struct task *t = in->task;
    for (size_t k = 0; t->tensors[i].indexes && k < t->nassumptions; k++) {
        const struct assumption *x = &t->assumptions[k];
        double v;
        if (x->tensor != i || x->kind != ASSUME_COMPARE || !expr_eval_real(x->number, in->dims, &v))
            continue;
        bool less = x->op == EXPR_LT || x->op == EXPR_LE;
        double end = x->op == EXPR_LT   ? ceil(v) - 1
                     : x->op == EXPR_LE ? floor(v)
                     : x->op == EXPR_GT ? floor(v) + 1
                                        : ceil(v);
        narrow(&in->tensors[i], less ? -INFINITY : end, less ? end : INFINITY);
    }
}

/* The range of a let or a defined input is that of its expression. */
static void range_of_body(struct inst *in, const struct statement *s) {
    struct bound_tensor *b = &in->tensors[s->tensor];
    struct ranges r = ranges_of(in, s);
    struct range v;
    if (in->task->tensors[s->tensor].indexes && range_of(&r, s->body, &v) == RANGE_OK &&
        v.lo >= b->lo && v.hi <= b->hi) {
        b->lo = v.lo;
        b->hi = v.hi;
    }
}

static bool is_integer(const struct tensor *x) {
    char kind = dtype_info(x->dtype)->kind;
    return kind == 'i' || kind == 'u';
}

static void range_of_integers(struct inst *in, const struct statement *s) {
    const struct tensor *x = &in->task->tensors[s->tensor];
    if (is_integer(x) && (x->role == TENSOR_LET || x->dist.kind == DIST_DEFINED))
        range_of_body(in, s);
}

static void range_of_type(const struct tensor *x, struct bound_tensor *b) {
    double lo, hi;
    dtype_limits(x->dtype, &lo, &hi);
    b->lo = lo <= -0x1p63 ? INT64_MIN : (int64_t)lo;
    b->hi = hi >= 0x1p63 ? INT64_MAX : (int64_t)hi;
}

static bool bind_tensors(struct inst *in, struct err *err) {
    const struct task *t = in->task;
    size_t total = 0;
    for (size_t i = 0; i < t->ntensors; i++) {
        const struct tensor *x = &t->tensors[i];
        bool given = tensor_is_input(x) || x->role == TENSOR_RAND;
        if (!bind_tensor(t, i, in->dims, &in->tensors[i], &total, err) ||
            (given && !check_dist(t, x, in->dims, err)))
            return false;
        if (!is_integer(x))
            continue;
        range_of_type(x, &in->tensors[i]);
        if (given)
            range_of_input(in, i);
        range_by_assumptions(in, i);
        if (in->tensors[i].lo > in->tensors[i].hi)
            return fail_at(t, x->at, x->len, err, NULL,
                           "the assumptions leave no value for the elements of this tensor");
    }
    return true;
}

static bool check_statements(struct inst *in, const struct statement *list, size_t n,
                             struct arena *a, struct err *err) {
    for (size_t i = 0; i < n; i++) {
        /* Of a recurrence first: its places may come from its own steps. */
        if (list[i].recurs.number)
            range_of_integers(in, &list[i]);
        if (!bounds_check(in, &list[i], a, err))
            return false;
        range_of_integers(in, &list[i]);
    }
    return true;
}

static bool check_assumption(const struct inst *in, const struct assumption *x, struct arena *a,
                             struct err *err) {
    const struct task *t = in->task;
    const struct bound_tensor *b = &in->tensors[x->tensor];
    size_t rank = t->tensors[x->tensor].rank;
    double v;
    if (x->kind == ASSUME_ZERO)
        return bounds_check(in, &x->s, a, err);
    if (x->kind == ASSUME_COMPARE)
        return expr_eval_real(x->number, in->dims, &v) ||
               fail_at(t, x->number->at, x->number->len, err, NULL, "the number is not finite");
    return b->extent[rank - 2] == b->extent[rank - 1] ||
           err_at(err, t->file, t->text, x->at, x->len, NULL,
                  "a matrix of %lld by %lld cannot be symmetric", (long long)b->extent[rank - 2],
                  (long long)b->extent[rank - 1]);
}

bool task_bind(const struct task *t, const struct binding *set, size_t n, struct arena *a,
               struct inst **out, struct err *err) {
    struct inst *in = arena_new_of(a, struct inst);
    in->task = t;
    in->dims = arena_array(a, int64_t, t->ndims + 1);
    in->tensors = arena_array(a, struct bound_tensor, t->ntensors);
    if (!check_settings(t, set, n, err) || !bind_dims(t, set, n, in->dims, err) ||
        !bind_tensors(in, err) || !coverage_check(in, a, err) ||
        !check_statements(in, t->definitions, t->ndefinitions, a, err) ||
        !check_statements(in, t->statements, t->nstatements, a, err))
        return false;
    for (size_t i = 0; i < t->nassumptions; i++)
        if (!check_assumption(in, &t->assumptions[i], a, err))
            return false;
    *out = in;
    return true;
}

bool task_bind_check(const struct task *t, size_t check, struct arena *a, struct inst **out,
                     struct err *err) {
    BUG_IF(check >= t->nchecks);
    return task_bind(t, t->checks[check].set, t->checks[check].n, a, out, err);
}

bool task_bind_also(struct inst *in, struct arena *a, struct err *err) {
    in->also = arena_array(a, struct inst *, in->task->nchecks);
    for (in->nalso = 0; in->nalso < in->task->nchecks; in->nalso++)
        if (!task_bind_check(in->task, in->nalso, a, &in->also[in->nalso], err))
            return false;
    return true;
}

bool inst_divides(const struct inst *in, const struct expr *e, int64_t by) {
    int64_t v;
    bool all = expr_eval_dims(e, in->dims, &v) && v % by == 0;
    for (size_t i = 0; i < in->nalso && all; i++)
        all = expr_eval_dims(e, in->also[i]->dims, &v) && v % by == 0;
    return all;
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
    return t->role == TENSOR_IN || t->role == TENSOR_PARAM || t->role == TENSOR_INOUT;
}

bool tensor_is_output(const struct tensor *t) {
    return t->role == TENSOR_OUT || t->role == TENSOR_INOUT;
}

bool tensor_has_memory(const struct tensor *t) {
    return t->role != TENSOR_LET && t->role != TENSOR_RAND;
}
