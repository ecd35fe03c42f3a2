/* Two evaluators agree: the blocked reference, and the plain tree walk that makes defined inputs,
 * on every task of the repository at its small check shapes. */
#include "base/file.h"
#include "fixture.h"
#include "spec/convert_value.h"
#include "spec/cost.h"
#include "spec/scalar.h"

struct plain {
    const struct inst *in;
    double *value[TASK_MAX_TENSORS]; /* of inputs as given; of lets and outputs once computed */
    double *result[TASK_MAX_TENSORS];
    struct scalar s;
};

static double read_plain(void *ctx, size_t tensor, int64_t linear) {
    struct plain *p = ctx;
    return p->value[tensor][linear];
}

static bool place(struct plain *p, const struct statement *s, int64_t i) {
    const struct bound_tensor *b = &p->in->tensors[s->tensor];
    for (size_t k = 0; k < p->in->task->tensors[s->tensor].rank; k++) {
        int64_t at = i / b->stride[k] % b->extent[k], c;
        if (s->position[k] >= 0)
            p->s.var[s->position[k]] = at;
        else if (!expr_eval_dims(s->constant[k], p->in->dims, &c) || c != at)
            return false;
    }
    return true;
}

static void run_statement(struct plain *p, const struct statement *s) {
    const struct tensor *t = &p->in->task->tensors[s->tensor];
    double *to = t->role == TENSOR_LET ? p->value[s->tensor] : p->result[s->tensor];
    for (int64_t i = 0; i < p->in->tensors[s->tensor].count; i++)
        if (place(p, s, i)) {
            double v = scalar_eval(&p->s, s->body);
            bool rounds = t->role == TENSOR_LET && dtype_info(t->dtype)->kind == 'f';
            to[i] = rounds ? round_to(t->dtype, v) : v;
        }
}

/* Outputs may be read by later statements. */
static void plain_eval(struct plain *p, struct fixture *f) {
    const struct task *t = f->task;
    *p = (struct plain){.in = f->in};
    p->s.in = f->in;
    p->s.read = read_plain;
    p->s.ctx = p;
    for (size_t i = 0; i < t->ntensors; i++) {
        size_t n = (size_t)f->in->tensors[i].count;
        p->value[i] = mem_alloc(n * sizeof(double));
        if (f->inputs[i])
            data_load(t->tensors[i].dtype, f->inputs[i], n, p->value[i]);
        if (tensor_is_output(&t->tensors[i]))
            p->result[i] =
                t->tensors[i].role == TENSOR_OUT ? p->value[i] : mem_alloc(n * sizeof(double));
    }
    for (size_t i = 0; i < t->nstatements; i++) {
        p->s.nmemos = 0;
        run_statement(p, &t->statements[i]);
    }
}

static void plain_release(struct plain *p) {
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++) {
        if (p->result[i] != p->value[i])
            mem_free(p->result[i]);
        mem_free(p->value[i]);
    }
}

/* fp64 sums in another order differ a little; what the reference does not judge may differ. */
static size_t differences(const struct reference *r, const double *v, double *worst) {
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) {
        double a = r->value[i], b = v[i];
        if (isinf(r->estimate[i]) || (isnan(a) && isnan(b)) || a == b)
            continue;
        double off = fabs(a - b) / (1e-9 * fabs(b) + 1e-3 * r->estimate[i] + 1e-300);
        if (!(off <= 1)) {
            n++;
            *worst = fmax(*worst, fabs(a - b));
        }
    }
    return n;
}

static void check_plain(struct fixture *f, const char *what, const struct plain *p) {
    for (size_t r = 0; r < f->nrefs; r++) {
        double worst = 0;
        size_t n = differences(&f->refs[r], p->result[f->refs[r].tensor], &worst);
        CHECKF(n == 0, "%s: %zu of %zu elements differ, by up to %g", what, n, f->refs[r].count,
               worst);
    }
}

/* Following the largest intermediate takes other ways through the reference. */
static bool eval_with_peak(struct fixture *f) {
    double peak;
    reference_release(f->refs, f->nrefs);
    f->refs = NULL;
    f->nrefs = 0;
    return reference_eval(f->in, (const void *const *)f->inputs, 1, &f->refs, &f->nrefs, &peak,
                          &f->err);
}

static size_t agree_task(struct fixture *f, const char *path) {
    static const enum data_kind kinds[] = {DATA_STATED, DATA_SIGNED, DATA_SORTED};
    size_t done = 0;
    if (!task_load(path, f->a, &f->task, &f->err)) {
        CHECKF(false, "%s", f->err.text);
        return 0;
    }
    for (size_t c = 0; c < f->task->nchecks; c++) {
        struct cost cost;
        if (!task_bind_check(f->task, c, f->a, &f->in, &f->err))
            continue;
        cost_of(f->in, &cost);
        if (cost.flops > 3e5)
            continue;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            struct plain p;
            if (!fixture_data(f, kinds[k], 5))
                continue;
            const char *what = arena_printf(f->a, "%.*s check %zu %s", STR_ARG(f->task->name), c,
                                            data_name(kinds[k]))
                                   .p;
            plain_eval(&p, f);
            check_plain(f, what, &p);
            CHECKF(eval_with_peak(f), "%s", f->err.text);
            check_plain(f, what, &p);
            plain_release(&p);
            done++;
        }
    }
    return done;
}

static void folder_agrees(const char *name, size_t least) {
    const char *root = getenv("SOURCE_ROOT");
    struct fixture f = {.a = arena_new((size_t)256 << 20)};
    const char *path = arena_printf(f.a, "%s/tasks/%s", root ? root : ".", name).p;
    str *names;
    size_t n = 0, done = 0;
    for (int i = 0; i < DATA_COUNT; i++)
        f.scale.factor[i] = 1;
    CHECKF(dir_list(path, f.a, &names, &n, &f.err), "%s", f.err.text);
    tap_share();
    for (size_t i = 0; i < n; i++)
        if (tap_takes(i) && str_ends(names[i], S(".task")))
            done += agree_task(&f, arena_printf(f.a, "%s/%.*s", path, STR_ARG(names[i])).p);
    CHECKF(done >= tap_least(least), "%zu evaluations", done);
    fixture_end(&f);
}

static void level1(void) {
    folder_agrees("kernelbench/level1", 300);
}

static void layers(void) {
    folder_agrees("layers", 60);
}

static void smoke(void) {
    folder_agrees("smoke", 10);
}

static const struct tap_case cases[] = {
    {"kernelbench level 1", level1},
    {"layers", layers},
    {"smoke", smoke},
};
TAP_CASES(cases)
