/* Evaluates the statements of an instance in order, block by block, on several threads.
 *
 * A let keeps its values and variances in heap arrays until the end; a typed let is rounded to its
 * type. An output's value stays the fp64 one; what storing it in its type costs goes into the
 * estimate. */
#include "spec/reference.h"

#include "spec/bind.h"
#include "spec/convert.h"
#include "spec/parallel.h"
#include "spec/program.h"
#include <math.h>

struct evaluation {
    const struct inst *in;
    unsigned threads;
    bool track_peak;
    double peak;
    /* Of every let and output: value, and variance (let) or estimate (output). */
    double *value[TASK_MAX_TENSORS];
    double *error[TASK_MAX_TENSORS];
    struct memory mem;
};

/* One statement being run. */
struct run {
    struct evaluation *ev;
    const struct program *p;
    enum dtype dtype;
    bool typed_let, output;
    struct limits limits;
    double peak[PARALLEL_MOST];
    bool failed[PARALLEL_MOST];
};

/* A stored integer is exact or, outside its type, undefined. */
static double integer_estimate(enum dtype t, double v, double variance) {
    double lo, hi;
    dtype_limits(t, &lo, &hi);
    return v >= lo && v <= hi ? sqrt(variance) : INFINITY;
}

/* Storing must not eat up the allowance of the arithmetic, nor be multiplied by it: its share is
 * set so that rms_limit shares are half an ulp. */
static double float_estimate(const struct run *r, double *v, double variance) {
    double s = sqrt(variance), edge = dtype_overflow(r->dtype), room = r->limits.worst * s;
    if (isinf(*v))
        return 0;
    if (fabs(*v) >= edge + room) {
        *v = copysign(INFINITY, *v);
        return 0;
    }
    if (fabs(*v) > edge - room)
        return INFINITY;
    if (variance == 0 && dtype_round(r->dtype, *v) == *v)
        return 0;
    double share = dtype_half_ulp(r->dtype, *v) / r->limits.rms;
    return sqrt(variance + share * share);
}

static double output_estimate(const struct run *r, double *v, double variance) {
    char kind = dtype_info(r->dtype)->kind;
    if (isinf(variance) || (isnan(*v) && kind != 'f'))
        return INFINITY;
    if (isnan(*v))
        return 0;
    return kind == 'f' ? float_estimate(r, v, variance) : integer_estimate(r->dtype, *v, variance);
}

/* A typed let rounds. Away from a rounding boundary every honest evaluation rounds to the same
 * number and its error is gone; near one it may be off by a whole step. */
static double let_variance(const struct run *r, double *v, double variance) {
    char kind = dtype_info(r->dtype)->kind;
    double exact = *v;
    if (!r->typed_let || isinf(variance) || !isfinite(exact))
        return variance;
    if (kind != 'f')
        return isinf(integer_estimate(r->dtype, exact, 0)) ? INFINITY : variance;
    *v = dtype_round(r->dtype, exact);
    double half = dtype_half_ulp(r->dtype, exact);
    double room = r->limits.worst * sqrt(variance);
    if (isinf(*v) || room == 0)
        return 0;
    bool near = fabs(exact - *v) + room >= half;
    return near ? variance + 4 * half * half : 0;
}

static void store_block(const struct run *r, const struct reg *result, int64_t first, size_t n) {
    double *value = r->ev->value[r->p->s->tensor] + first;
    double *error = r->ev->error[r->p->s->tensor] + first;
    for (size_t l = 0; l < n; l++) {
        double v = result->v[l];
        error[l] =
            r->output ? output_estimate(r, &v, result->e[l]) : let_variance(r, &v, result->e[l]);
        value[l] = v;
    }
}

static void run_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    struct run *r = ctx;
    struct machine m;
    int64_t count = r->ev->in->tensors[r->p->s->tensor].count;
    r->failed[part] = !machine_init(&m, r->p, &r->ev->mem, r->ev->track_peak);
    for (int64_t block = first; block < last && !r->failed[part]; block++) {
        int64_t at = block * LANES;
        size_t n = count - at < LANES ? (size_t)(count - at) : LANES;
        machine_run(&m, at, n);
        store_block(r, &m.regs[r->p->result], at, n);
    }
    r->peak[part] = m.peak;
    machine_release(&m);
}

static double *array_for(int64_t count, struct err *err) {
    double *p = mem_try_resize(NULL, (size_t)count * sizeof *p);
    if (!p)
        err_set(err, ERR_ENV, "no memory for the reference of %lld elements", (long long)count);
    return p;
}

static bool run_statement(struct evaluation *ev, const struct statement *s, struct err *err) {
    const struct tensor *t = &ev->in->task->tensors[s->tensor];
    int64_t count = ev->in->tensors[s->tensor].count;
    struct program p;
    struct run r = {.ev = ev,
                    .p = &p,
                    .dtype = t->dtype,
                    .typed_let = t->role == TENSOR_LET && t->dtype != DTYPE_F64,
                    .output = t->role == TENSOR_OUT,
                    .limits = accuracy_limits(ev->in->task->accuracy)};
    ev->value[s->tensor] = array_for(count, err);
    ev->error[s->tensor] = array_for(count, err);
    if (!ev->value[s->tensor] || !ev->error[s->tensor])
        return false;
    program_compile(ev->in, s, &p);
    unsigned parts = parallel_for(ev->threads, (count + LANES - 1) / LANES, run_piece, &r);
    bool ok = true;
    for (unsigned i = 0; i < parts; i++) {
        ok &= !r.failed[i];
        ev->peak = r.peak[i] > ev->peak ? r.peak[i] : ev->peak;
    }
    program_release(&p);
    return ok || err_set(err, ERR_ENV, "no memory for the registers of the reference");
}

static void hand_out(struct evaluation *ev, struct reference **out, size_t *n) {
    const struct task *t = ev->in->task;
    struct reference *refs = mem_alloc(t->ntensors * sizeof *refs);
    *n = 0;
    for (size_t i = 0; i < t->ntensors; i++) {
        if (t->tensors[i].role != TENSOR_OUT)
            continue;
        refs[(*n)++] =
            (struct reference){i, (size_t)ev->in->tensors[i].count, ev->value[i], ev->error[i]};
        ev->value[i] = ev->error[i] = NULL;
    }
    *out = refs;
}

bool reference_eval(const struct inst *in, const void *const *inputs, unsigned threads,
                    struct reference **out, size_t *n, double *peak, struct err *err) {
    struct evaluation ev = {.in = in, .threads = threads, .track_peak = peak != NULL};
    const struct task *t = in->task;
    bool ok = true;
    ev.mem = (struct memory){inputs, ev.value, ev.error};
    for (size_t i = 0; i < t->nstatements && ok; i++)
        ok = run_statement(&ev, &t->statements[i], err);
    if (ok)
        hand_out(&ev, out, n);
    if (ok && peak)
        *peak = ev.peak;
    for (size_t i = 0; i < t->ntensors; i++) {
        mem_free(ev.value[i]);
        mem_free(ev.error[i]);
    }
    return ok;
}

void reference_release(struct reference *refs, size_t n) {
    for (size_t i = 0; i < n; i++) {
        mem_free(refs[i].value);
        mem_free(refs[i].estimate);
    }
    mem_free(refs);
}

str element_name(const struct inst *in, size_t tensor, int64_t index, struct arena *a) {
    const struct tensor *t = &in->task->tensors[tensor];
    const struct bound_tensor *b = &in->tensors[tensor];
    str s = t->name;
    for (size_t k = 0; k < t->rank; k++)
        s = arena_printf(a, "%.*s%c%lld", STR_ARG(s), k ? ',' : '[',
                         (long long)(index / b->stride[k] % b->extent[k]));
    return t->rank ? arena_printf(a, "%.*s]", STR_ARG(s)) : s;
}
