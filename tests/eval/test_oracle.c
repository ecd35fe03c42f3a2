/* The oracle against the CPU: the same tasks, shapes and kinds of data, its kernels on the
 * simulator. Inputs must be the same bits; expected values and estimates what the evaluator says;
 * comparisons of right, wrong, unwritten and other outputs what compare.c says, and the same to the
 * last bit whether what is expected is kept or evaluated.
 *
 * Some tasks at small shapes, of them and of the constructs $TASKS_EVERY's share; with
 * CUTEPILOT_TEST_LONG all of them, more shapes and every kind. */
#include "tap.h"

#include "oracle_bench.h"

#include "base/file.h"
#include "eval/oracle_run.h"
#include "eval/poison.h"
#include "spec/program.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool long_run;

/* ---- one case ---- */

struct trial {
    const struct task *t;
    struct bench *b;
    struct engine e;
    struct oracle *o;
    const struct inst *in;
    enum data_kind kind;
    const char *label;
    double tolerance; /* of estimates, relative */
    size_t keep;
    void *inputs[TASK_MAX_TENSORS];
    uint64_t at[TASK_MAX_TENSORS];
    struct reference *refs;
    size_t nrefs;
    struct oracle_case *c,
        *other; /* the same case, which evaluates what it keeps; NULL: it does so */
};

#define NAME(x) STR_ARG((x)->t->name), (x)->label, data_name((x)->kind)
#define WHERE   "%.*s at %s, %s: "

static bool same_value(double a, double b, double estimate) {
    if (isnan(a) || isnan(b) || isinf(a) || isinf(b))
        return isnan(a) ? isnan(b) : a == b;
    double allow = 1e-12 * fabs(a) + (isinf(estimate) ? fabs(a) : 1e-3 * estimate);
    return fabs(a - b) <= allow;
}

static bool same_estimate(double a, double b, double tolerance) {
    if (isinf(a) || isinf(b) || a == 0 || b == 0)
        return a == b || (a + b < 1e-300);
    return fabs(a - b) <= tolerance * a;
}

static void check_inputs(struct trial *x) {
    for (size_t i = 0; i < x->t->ntensors; i++) {
        if (!x->inputs[i])
            continue;
        size_t bytes = x->in->tensors[i].bytes, item = bytes / (size_t)x->in->tensors[i].count;
        const char *got = bench_host(x->b, x->at[i], bytes), *want = x->inputs[i];
        size_t bad = 0;
        while (bad < bytes && got[bad] == want[bad])
            bad++;
        CHECKF(bad == bytes, WHERE "%.*s differs at element %zu of %lld", NAME(x),
               STR_ARG(x->t->tensors[i].name), bad / item, (long long)x->in->tensors[i].count);
    }
}

static void check_reference(struct trial *x) {
    struct err err = {0};
    for (size_t r = 0; r < x->nrefs; r++) {
        const struct reference *ref = &x->refs[r];
        double *v = mem_alloc(ref->count * sizeof *v), *e = mem_alloc(ref->count * sizeof *e);
        size_t bad_value = 0, bad_estimate = 0, shown = 0;
        CHECKF(oracle_reference(x->c, ref->tensor, 0, ref->count, v, e, &err), WHERE "%s", NAME(x),
               err.text);
        for (size_t i = 0; i < ref->count; i++) {
            bool value = same_value(ref->value[i], v[i], ref->estimate[i]);
            bool estimate = same_estimate(ref->estimate[i], e[i], x->tolerance);
            bad_value += !value && !(isinf(ref->estimate[i]) && isinf(e[i]));
            bad_estimate += !estimate;
            if ((!value || !estimate) && shown++ < 2)
                printf("# %.*s[%zu]: %.17g +- %.9g on the CPU, %.17g +- %.9g here\n",
                       STR_ARG(x->t->tensors[ref->tensor].name), i, ref->value[i], ref->estimate[i],
                       v[i], e[i]);
        }
        CHECKF(!bad_value && !bad_estimate, WHERE "%zu values and %zu estimates of %zu differ",
               NAME(x), bad_value, bad_estimate, ref->count);
        mem_free(v);
        mem_free(e);
    }
}

/* What a candidate may have left in an output. */
enum leaving {
    LEAVE_RIGHT,
    LEAVE_NEAR,
    LEAVE_OFF,
    LEAVE_ODD,
    LEAVE_NOTHING,
    LEAVE_BYTES,
    LEAVE_TIES,
    LEAVINGS
};

static double left_value(enum leaving what, const struct reference *ref, size_t i) {
    double v = ref->value[i], estimate = ref->estimate[i];
    bool some = i % 7 == 3 || i + 1 == ref->count;
    double far = isinf(estimate) ? 0 : 1000 * estimate + fabs(v) / 8 + 1e-3;
    switch (what) {
    case LEAVE_NEAR:
        return isinf(estimate) ? v : v + (i % 2 ? 1.5 : -1.5) * estimate;
    case LEAVE_OFF:
        return some ? v + far : v;
    case LEAVE_TIES: /* as good by the table of ties, or the place next to it */
        for (size_t k = 0; ref->ties && k < 64; k++)
            if (ref->ties[i * ref->tie_words] >> k & 1)
                return (double)(ref->tie_lo + (int64_t)k);
        return ref->ties ? v + 1 : v;
    case LEAVE_ODD:
        return some ? (i % 2 ? NAN : INFINITY) : v;
    default:
        return v;
    }
}

static void leave(struct trial *x, const struct reference *ref, enum leaving what) {
    enum dtype t = x->t->tensors[ref->tensor].dtype;
    size_t item = dtype_info(t)->bytes;
    char *p = bench_host(x->b, x->at[ref->tensor], x->in->tensors[ref->tensor].bytes);
    for (size_t i = 0; i < ref->count; i++) {
        double v = left_value(what, ref, i);
        if (what != LEAVE_NOTHING || i % 5)
            data_store(t, &v, 1, p + i * item);
        if (what == LEAVE_BYTES && t == DTYPE_BOOL && i % 3 == 1)
            p[i] = 7;
    }
}

/* Errors of a right output are differences of the last bits. */
static bool near(double a, double b, double by) {
    return a == b || (isinf(a) && isinf(b)) || fabs(a - b) <= by * fabs(a) + 1e-9;
}

static void check_comparison(struct trial *x, enum leaving what, const struct reference *ref,
                             const struct oracle_output *out, uint64_t key) {
    struct comparison want;
    const struct comparison *got = &out->comparison;
    const void *memory = bench_host(x->b, x->at[ref->tensor], 1);
    size_t first = 0;
    reference_compare(x->in, ref, memory, 1, &want);
    uint64_t unwritten =
        x->t->tensors[ref->tensor].role == TENSOR_OUT
            ? poison_count(x->t->tensors[ref->tensor].dtype, key, memory, ref->value, ref->estimate,
                           accuracy_limits(x->t->accuracy).worst, ref->count, 1, &first)
            : 0;
    CHECKF(out->tensor == ref->tensor, WHERE "outputs out of order", NAME(x));
    CHECKF(out->unwritten.count == unwritten &&
               (!unwritten || out->unwritten.first == (int64_t)first),
           WHERE "%llu unwritten, not %llu", NAME(x), (unsigned long long)out->unwritten.count,
           (unsigned long long)unwritten);
    CHECKF(got->judged == want.judged && got->wrong == want.wrong &&
               got->nonfinite == want.nonfinite && got->pass == want.pass &&
               got->pass_looser == want.pass_looser,
           WHERE
           "leaving %d: %llu judged, %llu wrong, %llu odd, %d %d; not %llu, %llu, %llu, %d %d",
           NAME(x), (int)what, (unsigned long long)got->judged, (unsigned long long)got->wrong,
           (unsigned long long)got->nonfinite, got->pass, got->pass_looser,
           (unsigned long long)want.judged, (unsigned long long)want.wrong,
           (unsigned long long)want.nonfinite, want.pass, want.pass_looser);
    CHECKF(near(want.worst, got->worst, 2 * x->tolerance) &&
               near(want.rms, got->rms, 2 * x->tolerance) && got->worst_limit == want.worst_limit &&
               got->rms_limit == want.rms_limit,
           WHERE "leaving %d: worst %g, rms %g; not %g, %g", NAME(x), (int)what, got->worst,
           got->rms, want.worst, want.rms);
    /* A truth value that is wrong twice is told once here. */
    bool told = x->t->tensors[ref->tensor].dtype != DTYPE_BOOL;
    CHECKF(!told || got->nfirst == want.nfirst, WHERE "%zu mismatches, not %zu", NAME(x),
           got->nfirst, want.nfirst);
    for (size_t i = 0; told && i < got->nfirst && i < want.nfirst; i++)
        CHECKF(got->first[i].index == want.first[i].index, WHERE "mismatch %zu at %lld, not %lld",
               NAME(x), i, (long long)got->first[i].index, (long long)want.first[i].index);
}

static bool same_bits(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool same_seen(const struct oracle_seen *a, const struct oracle_seen *b) {
    return a->count == b->count && a->first == b->first && a->where == b->where;
}

static bool same_comparison(const struct comparison *a, const struct comparison *b) {
    bool same = a->judged == b->judged && a->wrong == b->wrong && a->nonfinite == b->nonfinite &&
                same_bits(a->worst, b->worst) && same_bits(a->rms, b->rms) && a->pass == b->pass &&
                a->pass_looser == b->pass_looser && a->nfirst == b->nfirst;
    for (size_t i = 0; same && i < a->nfirst; i++)
        same = a->first[i].index == b->first[i].index &&
               same_bits(a->first[i].expected, b->first[i].expected) &&
               same_bits(a->first[i].got, b->first[i].got) &&
               same_bits(a->first[i].estimate, b->first[i].estimate);
    return same;
}

static bool same_output(const struct oracle_output *a, const struct oracle_output *b) {
    return a->tensor == b->tensor && same_seen(&a->unwritten, &b->unwritten) &&
           same_seen(&a->untrue, &b->untrue) && a->untrue_byte == b->untrue_byte &&
           same_comparison(&a->comparison, &b->comparison);
}

static void check_leaving(struct trial *x, enum leaving what) {
    struct err err = {0};
    struct oracle_result result[2] = {0};
    uint64_t key = 0x123456789 + (uint64_t)what;
    bool ok = oracle_poison(x->c, key, &err);
    for (size_t r = 0; r < x->nrefs && ok; r++)
        leave(x, &x->refs[r], what);
    ok = ok && oracle_queue_inputs(x->c, 0, &err) && oracle_queue_compare(x->c, key, 0, &err) &&
         (!x->other || oracle_queue_compare(x->other, key, 1, &err)) &&
         oracle_collect(x->o, result, 2, &err);
    CHECKF(ok, WHERE "%s", NAME(x), err.text);
    if (!ok)
        return;
    CHECKF(result[0].input.count == 0 && result[0].noutputs == x->nrefs, WHERE "inputs changed",
           NAME(x));
    for (size_t r = 0; r < x->nrefs && r < result[0].noutputs; r++) {
        check_comparison(x, what, &x->refs[r], &result[0].outputs[r], key);
        CHECKF(!x->other || same_output(&result[0].outputs[r], &result[1].outputs[r]),
               WHERE "leaving %d: %.*s differs where it is evaluated", NAME(x), (int)what,
               STR_ARG(x->t->tensors[x->refs[r].tensor].name));
    }
}

static struct oracle_case *case_with(struct trial *x, const struct data_scale *scale, size_t keep,
                                     struct err *err) {
    struct oracle_case *c = oracle_case_new(x->o, x->in, scale, x->kind, 11, 11, x->at, keep, err);
    if (c && oracle_fill(c, err) && oracle_expect(c, err))
        return c;
    oracle_case_free(c);
    return NULL;
}

/* What is expected of all outputs takes so much. */
static size_t expected_bytes(const struct inst *in) {
    size_t sum = 0;
    for (size_t i = 0; i < in->task->ntensors; i++)
        if (tensor_is_output(&in->task->tensors[i]))
            sum += ((size_t)in->tensors[i].count * 16 + 255) / 256 * 256;
    return sum;
}

/* The same arrays, but nothing that is expected. */
static struct oracle_case *evaluating(struct trial *x, const struct data_scale *scale,
                                      struct err *err) {
    struct oracle_case *c = case_with(x, scale, x->keep, err);
    if (!c)
        return NULL;
    const struct oracle_world *w = (const struct oracle_world *)c->host;
    struct oracle_tensor *tensors = (struct oracle_tensor *)(c->host + (w->tensor - c->world));
    for (size_t i = 0; i < x->t->ntensors; i++)
        tensors[i].expected = 0;
    c->kept = false;
    c->remade = true;
    if (bench_send(x->b, c->world, c->host, c->odd_offset, err))
        return c;
    oracle_case_free(c);
    return NULL;
}

static bool trial_start(struct trial *x, const struct data_scale *scale, struct err *err) {
    const struct task *t = x->t;
    bool ok = true;
    for (size_t i = 0; i < t->ntensors && ok; i++) {
        if (!tensor_has_memory(&t->tensors[i]))
            continue;
        ok = bench_alloc(x->b, x->in->tensors[i].bytes, &x->at[i], err);
        if (!tensor_is_input(&t->tensors[i]))
            continue;
        x->inputs[i] = mem_alloc(x->in->tensors[i].bytes);
        data_fill(x->in, scale, i, x->kind, 11, 0, x->in->tensors[i].count, x->inputs[i]);
    }
    ok = ok &&
         reference_eval(x->in, (const void *const *)x->inputs, 1, &x->refs, &x->nrefs, NULL, err);
    x->c = ok ? case_with(x, scale, x->keep, err) : NULL;
    return x->c;
}

static void trial_end(struct trial *x) {
    oracle_case_free(x->c);
    oracle_case_free(x->other);
    reference_release(x->refs, x->nrefs);
    for (size_t i = 0; i < x->t->ntensors; i++)
        mem_free(x->inputs[i]);
}

static void run_trial(struct trial *x, const struct data_scale *scale) {
    struct err err = {0};
    bool ok = trial_start(x, scale, &err);
    if (ok && x->c->kept && !x->o->plan.by_host) {
        x->other = evaluating(x, scale, &err);
        ok = x->other;
    }
    CHECKF(ok, WHERE "%s", NAME(x), err.text);
    if (ok) {
        check_inputs(x);
        check_reference(x);
        for (int what = 0; what < LEAVINGS; what++)
            check_leaving(x, (enum leaving)what);
    }
    trial_end(x);
}

/* ---- tasks ---- */

/* Where the CPU's evaluator sums in an order of its own choosing, does not bother about few terms
 * that are lost among larger ones, or does where a contraction here does not, its estimates are a
 * little different. */
static double tolerance_of(str task, enum data_kind kind) {
    static const struct {
        const char *task;
        double all, uneven; /* uneven: terms of very different size, or equal ones */
    } rows[] = {
        {"f", 0.15, 0.15}, /* cut into segments, chains of its mean count masked terms too */
        {"group_norm", 0.05, 0.4},
        {"group_norm_silu", 0.05, 0.4},
        {"frobenius_norm", 0.05, 0.1},
        {"avg_pool3d", 0.06, 0.06},
        {"rms_norm", 0.1, 0.6},
        {"mse_loss", 0.04, 0.04},
        {"huber_loss", 0.04, 0.04},
        {"cosine_similarity", 0.04, 0.04},
        {"layer_norm_backward", 0.05, 0.05},
        {"matrix_vector_multiplication", 0.01, 0.6},
        {"matmul_large_k", 0.01, 0.6},
    };
    bool uneven = kind == DATA_WIDE || kind == DATA_CONSTANT || kind == DATA_ONEHOT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (str_is(task, rows[i].task))
            return uneven ? rows[i].uneven : rows[i].all;
    return 0.01;
}

/* Engines of different sizes: one that many threads share a result on, one that each makes several
 * on, and one on which they do both. */
static const int64_t engine_sizes[] = {1 << 17, 2, 64};

static size_t trials; /* a run that finds no tasks must not pass */
static size_t block_launches, sort_launches;

static void run_shape(const struct task *t, struct bench *b, const struct inst *in, bool all,
                      size_t keep) {
    static const enum data_kind some[] = {DATA_STATED, DATA_WIDE, DATA_NONFINITE};
    struct engine e = engine_of(b);
    struct err err = {0};
    struct data_scale scale;
    struct arena *a = arena_new(1 << 20);
    str label = inst_label(in, a);
    struct oracle *o = oracle_new(t, &e, &err);
    bool ok = o && data_scale_find(in, 11, &scale, &err);
    CHECKF(ok, "%s", err.text);
    for (int k = 0; k < (all ? DATA_COUNT : 3) && ok; k++) {
        struct trial x = {.t = t, .b = b, .e = e, .o = o, .in = in, .label = arena_cstr(a, label)};
        x.kind = all ? (enum data_kind)k : some[k];
        x.tolerance = tolerance_of(t->name, x.kind);
        size_t turn = t->ntensors + (size_t)x.kind; /* whatever ran before */
        x.keep = turn / 3 % 2 == 0 ? keep : keep ? expected_bytes(in) - 1 : (size_t)1 << 30;
        e.threads = engine_sizes[turn % (sizeof engine_sizes / sizeof *engine_sizes)];
        trials++;
        run_trial(&x, &scale);
    }
    oracle_free(o);
    arena_free(a);
    bench_forget(b);
}

/* At its own sizes, or at the first `shapes` checks; keep: how much memory a case may keep, and
 * every other one almost enough or, where that is nothing, all it needs. */
static void run_task(struct arena *a, const struct task *t, size_t shapes, bool all, size_t keep) {
    struct bench *b = bench_new(t);
    struct inst *in;
    struct err err = {0};
    for (size_t i = 0; b && i < (shapes ? shapes : 1); i++) {
        bool ok = shapes && i < t->nchecks ? task_bind_check(t, i, a, &in, &err)
                                           : task_bind(t, NULL, 0, a, &in, &err);
        CHECKF(ok, "%s", err.text);
        if (ok)
            run_shape(t, b, in, all, keep);
    }
    if (b) {
        block_launches += b->block_launches;
        sort_launches += b->sort_launches;
        bench_free_all(b);
    }
}

static void run_file(const char *path, size_t shapes, bool all) {
    struct arena *a = arena_new((size_t)256 << 20);
    struct task *t;
    struct err err = {0};
    bool ok = task_load(path, a, &t, &err);
    CHECKF(ok, "%s", err.text);
    if (ok)
        run_task(a, t, shapes, all, (size_t)1 << 30);
    arena_free(a);
}

static void run_folder(const char *folder) {
    char path[1024];
    struct dirent **names;
    int n = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
            run_folder(path);
        else if (str_ends(str_view(path), S(".task")) &&
                 (!strstr(folder, "level2") || i % 20 == 2)) /* a sample of what was imported */
            run_file(path, 2, strstr(path, "layers") != NULL);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
}

static void tasks(void) {
    static const struct {
        const char *path;
        size_t shapes;
        bool all;
    } rows[] = {
        {"smoke/gelu.task", 2, true},
        {"layers/masked_softmax.task", 1, true},
        {"layers/kv_cache_append.task", 2, false},
        {"layers/quantize_rows.task", 1, false},
        {"kernelbench/level1/015_lower_triangular_matmul.task", 1, false},
        {"kernelbench/level1/098_kl_div_loss.task", 2, false},
    };
    const char *root = getenv("SOURCE_ROOT"), *one = getenv("CUTEPILOT_TEST_TASK");
    char path[1024];
    if (missing)
        SKIP(missing);
    snprintf(path, sizeof path, "%s/tasks", root ? root : ".");
    if (one)
        run_file(one, 2, true);
    else if (long_run)
        run_folder(path);
    if (!one && !long_run)
        tap_share();
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !one && !long_run; i++) {
        if (!tap_takes(i))
            continue;
        snprintf(path, sizeof path, "%s/tasks/%s", root ? root : ".", rows[i].path);
        run_file(path, rows[i].shapes, rows[i].all);
    }
    CHECKF(trials >= (one ? 1 : long_run ? 500 : tap_least(40)), "%zu trials", trials);
}

/* ---- constructs that no shipped task has, or not at these sizes ---- */

#define INPUTS                                                                                     \
    "dim N = 5, M = 7, L = 4200\n"                                                                 \
    "in x[N,M] : f32 ~ normal(0,1)\n"                                                              \
    "in d[N,M] : f64 ~ uniform(-1,1)\n"                                                            \
    "in h[M] : f16 ~ uniform(0,2)\n"                                                               \
    "in b[N,M] : bool ~ bernoulli(0.5)\n"

static const struct construct {
    const char *name, *text;
    size_t keep;
    bool some; /* kinds of data, not all */
} constructs[] = {
    {"places of extremes, their ties, and reads at places from data",
     "task a \"a\"\n" INPUTS "in q[N] : i64 ~ randint(0,M)\n"
     "out best[N] : i32\n"
     "out near[N] : i64\n"
     "out picked[N] : f32\n"
     "let s[i,j] : bf16 = x[i,j] * 1.1 + d[i,j]\n"
     "let e[i,j] = exp(s[i,j] * 0.25)\n"
     "let g[i] : i32 = (q[i] + 2) // 2\n"
     "best[i] = argmax(j) exp(s[i,j] * 1e-7) * 1.7\n"
     "near[i] = argmin(j | b[i,j] || j == 0) x[i,j] * d[i,j]\n"
     "picked[i] = x[i,q[i]] + d[i, argmax(j) e[i,j]] + h[clamp(g[i], 0, M-1)] + "
     "log1p(abs(d[i,0]))\n",
     (size_t)1 << 30},
    {"integers, truth values and what is written in place",
     "task b \"b\"\n" INPUTS "in n[N,M] : i32 ~ randint(-9,9)\n"
     "in u[M] : u8 ~ randint(0,200)\n"
     "inout w[N,M] : bf16 ~ normal(0,1)\n"
     "inout k[M] : i32 ~ randint(0,50)\n"
     "out even[N,M] : bool\n"
     "out count[N] : i32\n"
     "out whole[N,M] : i8\n"
     "even[i,j] = (n[i,j] % 2 == 0) != (x[i,j] * 3 > d[i,j] && b[i,j])\n"
     "count[i] = sum(j | n[i,j] > 0) n[i,j] * n[i,j] - (sum(j) u[j])\n"
     "whole[i,j] = if(b[i,j], sign(x[i,j]) * 2, round(d[i,j] * 3))\n"
     "w[i,j] = w[i,j] * 2 + x[i,j]\n"
     "k[j] = k[j] + j\n",
     (size_t)1 << 30},
    {"enough elements of every type for several at a time",
     "task k \"k\"\n"
     "dim N = 5, M = 700\n"
     "in x[N,M] : f32 ~ normal(0,1)\n"
     "in n[N,M] : i8 ~ randint(-9,9)\n"
     "inout w[N,M] : bf16 ~ normal(0,1)\n"
     "out y[N,M] : f32\n"
     "out h[N,M+1] : f16\n"
     "out z[N,M] : f64\n"
     "out c[N,M] : i32\n"
     "out b[N,M] : bool\n"
     "out s[2,M] : f32\n"
     "out u[N,M] : f32\n"
     "out v[N,M] : f32\n"
     "out t[N,M] : f32\n"
     "y[i,j] = tanh(x[i,j] * 1.5) * x[i,j]\n"
     "h[i,j] = exp(pad(x[i,j-1], 0.5))\n"
     "z[i,j] = x[i,j] * x[i,j] + n[i,j]\n"
     "c[i,j] = n[i,j] * 3 + i\n"
     "b[i,j] = x[i,j] > 0.1 && n[i,j] < 3\n"
     "s[0,j] = x[0,j] * 2\n"
     "s[1,j] = sum(i) x[i,j]\n"
     "u[i,j] = sqrt(x[i,j] * 1.1 - x[i,j] * 1.1 + maximum(n[i,j] + 8, 0))\n" /* may be undefined */
     "v[i,j] = x[i,j] * sigmoid((x[i,j] * 1.1 - x[i,j] * 1.1) * 1e8 - 20)\n" /* either end */
     "t[i,j] = tanh((x[i,j] * 1.1 - x[i,j] * 1.1) * 1e8 - 20)\n"
     "w[i,j] = w[i,j] * 2 + x[i,j]\n",
     (size_t)1 << 30, true},
    {"scans, pieces, pads, doubtful guards; nothing kept",
     "task c \"c\"\n" INPUTS "rand r[N,M] ~ uniform(0,1)\n"
     "rand z[M] ~ bernoulli(0.5)\n"
     "in p[N,M] : f32 = r[i,j] / (sum(l) r[i,l]) + sin(z[j]) - (max(l) r[i,l]) * (i % 3)\n"
     "assume p[i,j] > -3\n"
     "assume x[i,j] == 0 | i > j + 3\n"
     "out pieces[N,2] : f32\n"
     "out doubts[N,2] : f32\n"
     "out scans[N,M] : f32\n"
     "out runs[M] : f32\n"
     "out mixed[N,M] : f16\n"
     "let t[i,j] = x[i,j] * 1.1 - h[j]\n"
     "let e[i,j] = exp(t[i,j] * 0.25)\n"
     "pieces[i,0] = prod(j) (x[i,j] * 0.5 + 1) + (argmax(j) e[i,j])\n"
     "pieces[i,1] = mean(j | x[i,j] * 1.01 > p[i,j]) x[i,j] * e[i,j]\n"
     "doubts[i,0] = max(j | x[i,j] * 1.1 >= x[i,j] + x[i,j] * 0.1) e[i,j]\n"
     "doubts[i,1] = sum(j | x[i,j] * 1.1 >= x[i,j] + x[i,j] * 0.1) x[i,j] * 0.3\n"
     "scans[i,j] = (sum(l <= j) t[i,l] * h[l]) + (max(j <= l < M) e[i,l])\n"
     "runs[j] = sum(l < j) h[l] + if(j > 0, h[j-1], 0) * pow(h[j], 1.5)\n"
     "mixed[i,j] = clamp(tanh(t[i,j]) * pad(x[i+1,j-1], 2), -1, 1) + sigmoid(p[i,j]) + "
     "floor(x[i,j]) * 0.5\n",
     0},
    {"a contraction on tensor cores that threads share",
     "task g \"g\"\n"
     "dim N = 32, L = 4200\n"
     "in x[L,N] : f32 ~ uniform(0,1)\n"
     "in w[L] : bf16 ~ uniform(0,1)\n"
     "out y[N] : f32\n"
     "y[i] = sum(l) x[l,i] * w[l]\n"
     "accuracy tf32\n",
     (size_t)1 << 30, true},
    {"factors near the smallest numbers of a lower class",
     "task n \"n\"\n"
     "dim N = 12, M = 70, D = 9\n"
     "in x[N,M] : f32 ~ normal(0,1)\n"
     "in v[M,D] : f16 ~ normal(0,1)\n"
     "out y[N,D] : f32\n"
     "out g[N] : f32\n"
     "let e[i,j] = exp(x[i,j] * 8 - 20)\n"
     "y[i,d] = sum(j) e[i,j] * v[j,d]\n"
     "g[i] = sum(j | x[i,j] > 0) exp(x[i,j] - 30) * (x[i,j] * x[i,j] + 0.3)\n"
     "accuracy f16\n",
     (size_t)1 << 30, true},
    {"a contraction with a pad that threads share",
     "task p \"p\"\n"
     "dim N = 64, L = 4200\n"
     "in x[L] : f32 ~ uniform(-1,1)\n"
     "in w[L] : f32 ~ uniform(-1,1)\n"
     "out y[N] : f32\n"
     "y[i] = sum(l) pad(x[l+i-3], 0) * w[l]\n",
     (size_t)1 << 30, true},
    {"NaN among the terms of sums that leave some out",
     "task q \"q\"\n"
     "dim N = 23, M = 90, L = 2600\n"
     "in x[N,M] : f32 ~ uniform(-1,1)\n"
     "in w[5] : f32 ~ uniform(-1,1)\n"
     "in u[L] : f32 ~ uniform(-1,1)\n"
     "in v[L] : bf16 ~ uniform(-1,1)\n"
     "in b[N,M] : bool ~ bernoulli(0.5)\n"
     "in g[M] : i32 ~ randint(0,M)\n"
     "out y[N,M] : f32\n"
     "out z[N,M] : f32\n"
     "out t[N,M] : f32\n"
     "out a[N,M] : f32\n"
     "out c[5,M] : f32\n"
     "out s[4] : f32\n"
     "let e[i,j] = exp(x[i,j])\n"
     "y[i,j] = sum(r < 3, q < 5) pad(x[i+r-1,j-2*q+4], 0) * w[q]\n"
     "z[i,j] = sum(q < 5 | (j - q) % 2 == 0) pad(e[i,(j-q)//2], 0) * w[q]\n"
     "t[i,j] = (sum(l <= j) x[i,l] * if(b[i,l], 1, 0)) + (sum(i <= l < N) x[l,j] * e[l,j])\n"
     "a[i,j] = sum(l <= j | b[i,l]) x[i,l] * x[i,j-l]\n"
     "c[0,j] = mean(i | b[i,j]) x[i,j] * e[i,j]\n"
     "c[1,j] = sum(i | x[i,j] * 1.1 >= x[i,j] + x[i,j] * 0.1) e[i,j] * e[i,M-1-j]\n"
     "c[4,j] = sum(i | x[i,j] * 1.1 >= x[i,j] + x[i,j] * 0.1) x[i,M-1-j]\n"
     "c[2,j] = sum(q < 5) pad(x[3,g[j]+q-2], 0) * w[q]\n"
     "c[3,j] = sum(i) pad(e[i-3,j], 0) * x[i,j]\n"
     "s[0] = sum(l) pad(u[l-2599], 0) * v[l]\n"
     "s[1] = sum(l | l % 3 == 0) u[l] * v[l]\n"
     "s[2] = sum(l) pad(u[2*l-3], 0) * exp(v[l])\n"
     "s[3] = sum(i | i < 9) (sum(q < 5) pad(x[i,q-3], 0) * w[q]) * w[i % 5]\n",
     (size_t)1 << 30, true},
    {"blocks of results, with edges, pads and batches",
     "task h \"h\"\n"
     "dim N = 2, C = 5, O = 3, H = 7, W = 9, I = 37, J = 35, K = 520\n"
     "in x[N,C,H,W] : f32 ~ uniform(-1,1)\n"
     "in w[O,C,3,3] : f16 ~ uniform(-1,1)\n"
     "in a[N,K,I] : bf16 ~ uniform(-1,1)\n"
     "in b[N,K,J] : f32 ~ uniform(-1,1)\n"
     "out y[N,O,H,W] : f32\n"
     "out z[N,I,J] : f32\n"
     "out m[J,I] : f32\n"
     "y[n,o,p,q] = sum(c,r,s < 3) pad(x[n,c,p+r-1,q-2*s+2], 0) * w[o,c,r,2-s]\n"
     "z[n,i,j] = sum(k) a[n,k,i] * b[n,k,j]\n"
     "m[j,i] = mean(n,k < K) a[n,(k*2)//3,i] * pad(b[n,k-1,j], 0.5)\n",
     (size_t)1 << 30, true},
    {"results that threads share, reductions inside reductions",
     "task f \"f\"\n" INPUTS "in long[L] : f32 ~ normal(0,1)\n"
     "in mask[4*L] : bool ~ bernoulli(0.5)\n"
     "out sums[5] : f32\n"
     "sums[0] = sum(l) long[l]\n"
     "sums[1] = mean(l) long[l] * long[l]\n"
     "sums[2] = max(l) long[l] * 1.3\n"
     "sums[3] = sum(i,j) x[i,j] * (sum(l) d[i,l] * h[l])\n"
     "sums[4] = mean(l < 4*L | mask[l]) long[l//4] * 0.7\n",
     (size_t)1 << 30},
    {"reductions by index: lists of terms, several sorted digits, doubtful numbers, batches",
     "task b \"b\"\n"
     "dim B = 2, T = 300, K = 90, D = 3\n"
     "in e[B,T] : i32 ~ randint(-9,K)\n"
     "in f[T] : i64 ~ randint(0,D)\n"
     "in x[B,T,D] : f32 ~ normal(0,1)\n"
     "out y[B,K,D] : f32\n"
     "out n[B,K] : i32\n"
     "out m[K,D] : f32\n"
     "out g[B,K] : f32\n"
     "out h[K] : i32\n"
     "y[b,k,d] = sum(t | e[b,t] == k) x[b,t,d]*x[b,t,d]\n"
     "n[b,k] = sum(t) if(e[b,t]//2 == k, 1, 0)\n"
     "m[k,d] = max(b,t | e[b,t] == k && f[t] == d && x[b,t,d] > -1) x[b,t,d]\n"
     "g[b,k] = 1 + (mean(t | k == e[b,t]) exp(x[b,t,0]))\n"
     "h[k] = sum(t | floor(x[0,t,1]*16) == k) 1\n",
     (size_t)1 << 30, true},
    {"bits of integers, and random numbers from a seed",
     "task r \"r\"\n" INPUTS "in n[N,M] : i32 ~ randint(-900,900)\n"
     "in u[N,M] : u8 ~ randint(0,256)\n"
     "in seed : i64 ~ randint(0,1000000007)\n"
     "out bits[N,M] : i64\n"
     "out moved[N,M] : i64\n"
     "out places[N,M] : i32\n"
     "out kept[N,M] : f32\n"
     "out int4[N] : f32\n"
     "def half(q, k) = bit_and(shr(q, 4*k), 15) - 8\n"
     "bits[i,j] = bit_and(n[i,j], u[i,j]) + 3*bit_or(n[i,j], j) - bit_xor(n[i,j], -u[i,j])\n"
     "moved[i,j] = shl(n[i,j], bit_and(u[i,j], 31)) + shr(n[i,j], u[i,j] - 2)\n"
     "places[i,j] = shl(i, 3) + bit_xor(shr(j, 1), bit_or(i, 4)) + bit_and(-j, 6)\n"
     "kept[i,j] = if(philox(seed + 4294967296, i*M + j) < 0.3, 0, x[i,j]/0.7) + "
     "philox(i - 3, j) * philox(n[i,j], u[i,j])\n"
     "int4[i] = sum(j) half(u[i,j//2], j % 2) * x[i,j]\n",
     (size_t)1 << 30},
    {"recurrences, which the host evaluates",
     "task steps \"steps\"\n" INPUTS "in w[M,M] : f32 ~ uniform(-0.3,0.3)\n"
     "out y[N,M] : f32\n"
     "out last[N] : f32\n"
     "out above[N,M] : bool\n"
     "let s[i,j] = pad(s[i-1,j], 0)*0.5 + x[i,j] + sum(k) w[j,k]*pad(r[i-1,k], 0)\n"
     "let r[i,j] = tanh(s[i,j])\n"
     "let q[i,j] = if(j == M - 1, x[i,j], 0.9*q[i,j+1] + x[i,j])\n"
     "y[i,j] = r[i,j] + q[i,j]\n"
     "last[i] = q[i,0]\n"
     "above[i,j] = s[i,j] > 0\n",
     (size_t)1 << 30},
};

static void run_construct(const struct construct *c) {
    struct arena *a = arena_new((size_t)64 << 20);
    struct task *t;
    struct err err = {0};
    bool ok = task_parse(S("construct.task"), str_view(c->text), a, &t, &err);
    CHECKF(ok, "%s: %s", c->name, err.text);
    if (ok)
        run_task(a, t, 0, !c->some, c->keep);
    arena_free(a);
}

static void all_constructs(void) {
    if (missing)
        SKIP(missing);
    tap_share();
    for (size_t i = 0; i < sizeof constructs / sizeof *constructs; i++)
        if (tap_takes(i))
            run_construct(&constructs[i]);
    if (tap_every() > 1) /* a share need not have those */
        return;
    CHECKF(block_launches > 0, "no thread made several results");
    CHECKF(sort_launches > 0, "no terms were sorted");
}

/* ---- memory that a kernel should not have touched, and trouble ---- */

static const char small_task[] = "task small \"small\"\n"
                                 "dim N = 300\n"
                                 "in x[N] : f32 ~ normal(0,1)\n"
                                 "in n[N] : i8 ~ randint(-5,5)\n"
                                 "out y[N] : f32\n"
                                 "y[i] = x[i] * n[i] / (1 + (max(j) abs(x[j])))\n";

/* A case of the small task, with data in place. */
struct small {
    struct arena *a;
    struct bench *b;
    struct engine e;
    struct oracle *o;
    struct trial x;
    struct data_scale scale;
};

static struct bench *small_bench; /* compiled once for all its tests */

static bool small_start(struct small *s) {
    struct task *t;
    struct inst *in;
    struct err err = {0};
    s->a = arena_new((size_t)16 << 20);
    bool ok = task_parse(S("small.task"), str_view(small_task), s->a, &t, &err) &&
              task_bind(t, NULL, 0, s->a, &in, &err) && data_scale_find(in, 1, &s->scale, &err);
    if (ok && !small_bench)
        small_bench = bench_new(t);
    s->b = ok ? small_bench : NULL;
    if (!s->b)
        return false;
    s->e = engine_of(s->b);
    s->o = oracle_new(t, &s->e, &err);
    s->x = (struct trial){.t = t, .b = s->b, .e = s->e, .o = s->o, .in = in, .label = "N=300"};
    ok = trial_start(&s->x, &s->scale, &err);
    CHECKF(ok, "%s", err.text);
    return ok;
}

static void small_end(struct small *s) {
    trial_end(&s->x);
    oracle_free(s->o);
    if (s->b)
        bench_forget(s->b);
    arena_free(s->a);
}

static void changed_inputs(void) {
    if (missing)
        SKIP(missing);
    struct small s = {0};
    struct err err = {0};
    struct oracle_result r[3];
    if (small_start(&s)) {
        char *x = bench_host(s.b, s.x.at[0], 4), *n = bench_host(s.b, s.x.at[1], 1);
        CHECK(oracle_queue_inputs(s.x.c, 0, &err));
        n[299] ^= 1;
        CHECK(oracle_queue_inputs(s.x.c, 1, &err));
        x[4 * 17] ^= 1;
        x[4 * 250 + 3] ^= 64;
        CHECK(oracle_queue_inputs(s.x.c, 2, &err));
        CHECK(oracle_collect(s.o, r, 3, &err));
        CHECK(r[0].input.count == 0 && r[0].noutputs == 0);
        CHECK(r[1].input.count == 1 && r[1].input.where == 1 && r[1].input.first == 299);
        CHECK(r[2].input.count == 2 && r[2].input.where == 0 && r[2].input.first == 17);
        CHECK(oracle_fill(s.x.c, &err) && oracle_queue_inputs(s.x.c, 0, &err) &&
              oracle_collect(s.o, r, 1, &err) && r[0].input.count == 0);
    }
    small_end(&s);
}

/* Of every length and alignment, the same bytes as the CPU's. */
static void canaries(void) {
    if (missing)
        SKIP(missing);
    enum { SIZE = 4096 };
    struct small s = {0};
    struct err err = {0};
    struct oracle_result r[2];
    uint64_t at = 0;
    if (small_start(&s) && bench_alloc(s.b, SIZE, &at, &err)) {
        unsigned char *host = (unsigned char *)bench_host(s.b, at, SIZE), want[SIZE];
        struct oracle_region regions[4] = {
            {at, 100, 1}, {at + 103, 1, 2}, {at + 111, 1024, 3}, {at + 2048, 2041, 4}};
        CHECK(oracle_canary_fill(s.o, regions, 4, &err));
        for (size_t i = 0; i < 4; i++) {
            size_t offset = (size_t)(regions[i].at - at), bytes = (size_t)regions[i].bytes;
            canary_fill(regions[i].key, want, bytes);
            CHECKF(memcmp(host + offset, want, bytes) == 0, "region %zu", i);
        }
        CHECK(host[100] == 0 && host[102] == 0 && host[104] == 0 && host[2048 + 2041] == 0);
        CHECK(oracle_queue_canaries(s.o, regions, 4, 0, &err));
        host[111 + 77] ^= 4;
        host[111 + 1023] ^= 4;
        host[2048] ^= 1;
        CHECK(oracle_queue_canaries(s.o, regions, 4, 1, &err));
        CHECK(oracle_collect(s.o, r, 2, &err));
        CHECK(r[0].canary.count == 0);
        CHECK(r[1].canary.count == 2 && r[1].canary.where == 2 && r[1].canary.first == 77);
    }
    small_end(&s);
}

static void digests(void) {
    if (missing)
        SKIP(missing);
    enum { SIZE = 4096 };
    struct small s = {0};
    struct err err = {0};
    struct oracle_result r[4];
    uint64_t at = 0;
    if (small_start(&s) && bench_alloc(s.b, SIZE, &at, &err)) {
        unsigned char *host = (unsigned char *)bench_host(s.b, at, SIZE);
        for (size_t i = 0; i < SIZE; i++)
            host[i] = (unsigned char)(i * 7);
        struct oracle_region regions[3] = {{at, 100, 1}, {at + 103, 1, 2}, {at + 2048, 2041, 4}};
        CHECK(oracle_queue_digests(s.o, regions, 3, 0, &err));
        CHECK(oracle_queue_digests(s.o, regions, 3, 1, &err));
        host[99] ^= 1; /* the last byte of the first, and two words of the last change places */
        uint64_t words[2];
        memcpy(words, host + 2048, sizeof words);
        memcpy(host + 2048, &words[1], 8);
        memcpy(host + 2056, &words[0], 8);
        CHECK(oracle_queue_digests(s.o, regions, 3, 2, &err));
        regions[1].key++;
        CHECK(oracle_queue_digests(s.o, regions, 3, 3, &err) && oracle_collect(s.o, r, 4, &err));
        CHECK(memcmp(r[0].digest, r[1].digest, sizeof r[0].digest) == 0);
        CHECK(r[2].digest[0] != r[0].digest[0] && r[2].digest[1] == r[0].digest[1]);
        CHECK(r[2].digest[2] != r[0].digest[2]);
        CHECK(r[3].digest[1] != r[0].digest[1]); /* nobody can tell without the key */
    }
    small_end(&s);
}

/* Two cases of right outputs, each in a slot. */
static bool compare_right(struct trial *x, struct oracle_case *a, struct oracle_case *b,
                          struct oracle_result *r) {
    struct err err = {0};
    bool ok = oracle_poison(a, 5, &err);
    leave(x, &x->refs[0], LEAVE_RIGHT);
    ok = ok && oracle_queue_compare(a, 5, 0, &err) && oracle_queue_compare(b, 5, 1, &err) &&
         oracle_collect(x->o, r, 2, &err);
    CHECKF(ok, "%s", err.text);
    return ok;
}

/* A case goes by what it has kept, given the room: made from another input, it is wrong there. */
static void kept_values(void) {
    if (missing)
        SKIP(missing);
    struct small s = {0};
    struct err err = {0};
    struct oracle_result r[2];
    struct oracle_case *roomy = NULL, *tight = NULL;
    if (small_start(&s)) {
        size_t room = expected_bytes(s.x.in);
        roomy = case_with(&s.x, &s.scale, room, &err);
        tight = case_with(&s.x, &s.scale, room - 1, &err);
        CHECKF(roomy && tight, "%s", err.text);
    }
    if (roomy && tight) {
        size_t room = expected_bytes(s.x.in), k = 0;
        char *x = bench_host(s.b, s.x.at[0], 4);
        CHECK(oracle_case_bytes(roomy) == room && oracle_case_bytes(tight) < room);
        while (s.x.refs[0].value[k] == 0)
            k++;
        x[4 * k + 3] ^= (char)0x80; /* its sign */
        CHECK(oracle_expect(roomy, &err) && oracle_expect(tight, &err));
        x[4 * k + 3] ^= (char)0x80;
        if (compare_right(&s.x, roomy, tight, r)) {
            const struct comparison *c = &r[0].outputs[0].comparison;
            CHECK(!c->pass && c->wrong == 1 && c->first[0].index == (int64_t)k);
            CHECK(r[1].outputs[0].comparison.pass);
            CHECK(!same_output(&r[0].outputs[0], &r[1].outputs[0]));
        }
        CHECK(oracle_expect(roomy, &err));
        if (compare_right(&s.x, roomy, tight, r))
            CHECK(r[0].outputs[0].comparison.pass &&
                  same_output(&r[0].outputs[0], &r[1].outputs[0]));
    }
    oracle_case_free(roomy);
    oracle_case_free(tight);
    small_end(&s);
}

/* What was made from inputs that a candidate had changed is gone when they are put right. */
static void made_again(void) {
    if (missing)
        SKIP(missing);
    struct small s = {0};
    struct err err = {0};
    struct oracle_result r[2];
    struct oracle_case *other = NULL;
    if (small_start(&s) && (other = case_with(&s.x, &s.scale, 0, &err))) {
        char *x = bench_host(s.b, s.x.at[0], 4);
        x[4 * 17 + 3] = 0x7e; /* the largest by far; `other` has the scratch */
        CHECK(oracle_queue_compare(s.x.c, 5, 0, &err) && oracle_collect(s.o, r, 1, &err));
        CHECK(oracle_fill(s.x.c, &err));
        if (compare_right(&s.x, s.x.c, other, r))
            CHECK(r[0].outputs[0].comparison.pass && r[1].outputs[0].comparison.pass);
    }
    oracle_case_free(other);
    small_end(&s);
}

/* An engine that fails is an error, at every launch, and what was queued is gone. */
static void failing_engine(void) {
    if (missing)
        SKIP(missing);
    struct small s = {0};
    struct oracle_result r[2];
    if (small_start(&s)) {
        for (size_t n = 1; n <= 3; n++) {
            struct err err = {0};
            s.b->fail_at = s.b->launches + n;
            bool ok = oracle_fill(s.x.c, &err) && oracle_queue_inputs(s.x.c, 0, &err) &&
                      oracle_queue_compare(s.x.c, 5, 1, &err);
            CHECKF(!ok && strstr(err.text, "the engine fails"), "%zu: %s", n, err.text);
            s.b->fail_at = 0;
            CHECK(oracle_collect(s.o, r, 2, &err) && r[1].noutputs == 0);
        }
        struct err err = {0};
        CHECK(oracle_poison(s.x.c, 5, &err) && oracle_queue_compare(s.x.c, 5, 0, &err));
        CHECK(oracle_collect(s.o, r, 1, &err) && r[0].noutputs == 1);
        CHECK(r[0].outputs[0].unwritten.count == 300 && r[0].outputs[0].unwritten.first == 0);
    }
    small_end(&s);
}

static const struct tap_case cases[] = {
    {"tasks", tasks},
    {"constructs", all_constructs},
    {"inputs that were changed", changed_inputs},
    {"canaries of any size and place", canaries},
    {"digests see every byte and its place", digests},
    {"what a case keeps", kept_values},
    {"values made from changed inputs", made_again},
    {"an engine that fails", failing_engine},
};

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "compiler") == 0)
        return compiler_main(argc - 2, argv + 2);
    long_run = getenv("CUTEPILOT_TEST_LONG") != NULL;
    compiling_start();
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    if (small_bench)
        bench_free_all(small_bench);
    compiling_end();
    return failed;
}
