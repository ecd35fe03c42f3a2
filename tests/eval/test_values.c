/* The error model as two compilers make it: value and estimate of every function, operator and
 * reduction by the evaluator on the CPU and by the oracle on the simulator, for all pairs of values
 * that are special to some of them. */
#include "tap.h"

#include "oracle_bench.h"

#include "eval/oracle_run.h"

static const double specials[] = {
    0.0,      -0.0,      1.0,    -1.0,     0.5,       -0.5,           1.5,
    2.5,      -2.0,      3.0,    0x1.8p-1, -7.25,     20.0,           88.0,
    89.5,     -87.5,     -104.0, 0x1p-149, -0x1p-149, 0x1p-126,       0x1p24,
    0x1p25,   1e-7,      -1e-7,  1e10,     -3e20,     0x1.fffffep127, -0x1.fffffep127,
    INFINITY, -INFINITY, NAN,
};
enum { SPECIALS = sizeof specials / sizeof *specials, FOLDED = 6 };

struct statements {
    struct buf *out;
    size_t n;
};

static void state(struct statements *s, const char *tensor, const char *body) {
    buf_printf(s->out, "%s[%zu,i] = %s\n", tensor, s->n++, body);
}

/* Of exact operands, of rounded ones, and of such as are hardly known, whose sign is mixed up. */
static const char *const operands[3][3] = {
    {"x[i]", "w[i]", "m[i,0]"},
    {"x[i]*1.1", "w[i]*0.7", "(m[i,0]+0.1)"},
    {"((x[i]*1.1-x[i]*1.1)*3e6+w[i])", "((w[i]*0.7-w[i]*0.7)*3e6+x[i])", "(m[i,0]*1.3)"},
};

/* Of functions that take integers alone. */
static const char *const integers[3][3] = {{"n[i]", "(i % 31)", "i"},
                                           {"(n[i] // 3)", "(i % 5)", "n[i]"},
                                           {"(7 - i)", "(i // 9 % 20)", "3"}};

static void state_functions(struct statements *s) {
    char body[256];
    for (int f = 0; f < FUNCTION_COUNT; f++)
        for (int k = 0; k < 3; k++) {
            const struct function_info *info = function_info((enum function)f);
            bool whole = info->result == RESULT_BITS || info->result == RESULT_SHIFTED ||
                         info->result == RESULT_DRAWN;
            int n = snprintf(body, sizeof body, "%s%s(", k == 1 ? "-" : "", info->name);
            for (size_t a = 0; a < info->args; a++)
                n += snprintf(body + n, sizeof body - (size_t)n, "%s%s", a ? ", " : "",
                              whole ? integers[k][a] : operands[k][a]);
            snprintf(body + n, sizeof body - (size_t)n, ")");
            state(s, "y", body);
        }
}

static void state_operators(struct statements *s) {
    static const char *const forms[] = {"%s + %s",
                                        "%s - %s",
                                        "%s * %s",
                                        "%s / %s",
                                        "if(%s > %s, x[i]*0.3, 2)",
                                        "if(!(%s <= %s) || w[i]*0.7 == x[i]*0.7, 1, x[i])",
                                        "1 / (%s * (%s - 1.1))",
                                        "if(n[i] != 0 && %s != %s, n[i] + 1, 3) * 1.5"};
    char body[256];
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (int k = f < 4 ? 0 : 1; k < 3; k++) {
            snprintf(body, sizeof body, forms[f], operands[k][0], operands[k][1]);
            state(s, "y", body);
        }
    state(s, "y", "n[i] // 7 + n[i] % (n[i] - 3) * 2");
    state(s, "y", "maximum(n[i], i) - abs(n[i] * 65537 * n[i])");
}

static void state_reductions(struct statements *s) {
    static const char *const ops[] = {"sum", "prod", "max", "min", "mean", "argmax", "argmin"};
    static const char *const terms[] = {"(j) m[i,j]", "(j) m[i,j]*1.1",
                                        "(j | m[i,j]*1.1 >= m[i,j] + m[i,j]*0.1) m[i,j]*0.7"};
    char body[256];
    for (size_t op = 0; op < sizeof ops / sizeof *ops; op++)
        for (size_t k = 0; k < sizeof terms / sizeof *terms; k++) {
            /* An index that is an output is judged by its terms, without an estimate of its own. */
            snprintf(body, sizeof body, "%s%s%s", op < 5 ? "" : "2*", ops[op], terms[k]);
            state(s, "z", body);
        }
    state(s, "z", "sum(j < 6) m[i,j] * x[j]");
    state(s, "z", "sum(j < 6) (m[i,j]*1.1) * x[j]");
}

static void special_task(const char *accuracy, struct buf *out) {
    struct buf body;
    buf_init(&body, 1 << 16);
    struct statements y = {.out = &body}, z = {.out = &body};
    state_functions(&y);
    state_operators(&y);
    state_reductions(&z);
    buf_printf(out,
               "task special \"special\"\ndim N = %d\nin x[N] : f32 ~ normal(0,1)\n"
               "in w[N] : f32 ~ normal(0,1)\nin m[N,%d] : f32 ~ normal(0,1)\n"
               "in n[N] : i32 ~ randint(-9,9)\nout y[%zu,N] : f64\nout z[%zu,N] : f64\n",
               SPECIALS * SPECIALS, FOLDED, y.n, z.n);
    buf_puts(out, buf_str(&body));
    buf_printf(out, "accuracy %s\n", accuracy);
    buf_release(&body);
}

/* All pairs; what is folded are so many that stand side by side, in two orders. */
static void fill_special(float *x, float *w, float *m, int32_t *n) {
    for (size_t i = 0; i < (size_t)SPECIALS * SPECIALS; i++) {
        size_t a = i % SPECIALS, b = i / SPECIALS;
        x[i] = (float)specials[a];
        w[i] = (float)specials[b];
        n[i] = i % 5 == 0 ? INT32_MAX - (int32_t)i : (int32_t)(i % 23) - 11;
        for (size_t j = 0; j < FOLDED; j++)
            m[i * FOLDED + j] = (float)specials[(a + j * (b % 2 ? 1 : b)) % SPECIALS];
    }
}

struct sides {
    const struct task *t;
    struct oracle_case *c;
    struct reference *refs;
    size_t nrefs;
};

/* Libraries may round a function's last bits differently, and slopes of what is cancelled follow;
 * apart from that both make the same operations in the same order. */
static void compare_special(struct sides *x) {
    struct err err = {0};
    for (size_t r = 0; r < x->nrefs; r++) {
        const struct reference *ref = &x->refs[r];
        size_t n = ref->count, bad = 0, judged = 0;
        double *v = mem_alloc(n * sizeof *v), *e = mem_alloc(n * sizeof *e);
        CHECKF(oracle_reference(x->c, ref->tensor, 0, n, v, e, &err), "%s", err.text);
        for (size_t i = 0; i < n; i++) {
            double a = ref->value[i], est = ref->estimate[i];
            bool close = a == v[i] || (isnan(a) && isnan(v[i])) || (isinf(est) && isinf(e[i])) ||
                         fabs(a - v[i]) <= 0x1p-48 * fabs(a);
            bool same = est == e[i] || fabs(est - e[i]) <= 1e-9 * est;
            judged += !isinf(est);
            if ((!close || !same) && bad++ < 12)
                printf("# %.*s[%zu,%zu]: %.17g +- %.12g on the CPU, %.17g +- %.12g here\n",
                       STR_ARG(x->t->tensors[ref->tensor].name), i / (SPECIALS * SPECIALS),
                       i % (SPECIALS * SPECIALS), a, est, v[i], e[i]);
        }
        CHECKF(!bad, "%zu of %zu differ", bad, n);
        CHECKF(judged > n / 4, "only %zu of %zu are judged", judged, n);
        mem_free(v);
        mem_free(e);
    }
}

/* Both sides get the special values in place of those that were drawn. */
static bool evaluate_both(struct bench *b, struct oracle *o, const struct inst *in, struct sides *x,
                          struct err *err) {
    struct data_scale scale;
    uint64_t at[TASK_MAX_TENSORS] = {0};
    void *inputs[TASK_MAX_TENSORS] = {0};
    bool ok = data_scale_find(in, 1, &scale, err);
    for (size_t i = 0; i < in->task->ntensors && ok; i++)
        ok = bench_alloc(b, in->tensors[i].bytes, &at[i], err);
    x->c = ok ? oracle_case_new(o, in, &scale, DATA_STATED, 1, 1, at, (size_t)1 << 30, err) : NULL;
    if (!x->c || !oracle_fill(x->c, err))
        return false;
    for (size_t i = 0; i < 4; i++)
        inputs[i] = bench_host(b, at[i], in->tensors[i].bytes);
    fill_special(inputs[0], inputs[1], inputs[2], inputs[3]);
    return oracle_expect(x->c, err) &&
           reference_eval(in, (const void *const *)inputs, 1, &x->refs, &x->nrefs, NULL, err);
}

static void run_special(const char *accuracy) {
    struct arena *a = arena_new((size_t)64 << 20);
    struct task *t;
    struct inst *in;
    struct err err = {0};
    struct buf text;
    buf_init(&text, 1 << 16);
    special_task(accuracy, &text);
    bool ok = task_parse(S("special.task"), buf_str(&text), a, &t, &err) &&
              task_bind(t, NULL, 0, a, &in, &err);
    CHECKF(ok, "%s", err.text);
    struct bench *b = ok ? bench_new(t) : NULL;
    if (b) {
        struct engine e = engine_of(b);
        struct oracle *o = oracle_new(t, &e, &err);
        struct sides x = {.t = t};
        ok = evaluate_both(b, o, in, &x, &err);
        CHECKF(ok && x.nrefs == 2, "%s", err.text);
        if (ok)
            compare_special(&x);
        reference_release(x.refs, x.nrefs);
        oracle_case_free(x.c);
        oracle_free(o);
        bench_free_all(b);
    }
    buf_release(&text);
    arena_free(a);
}

static void special_values(void) {
    if (missing)
        SKIP(missing);
    run_special("fp32");
    run_special("bf16");
}

static const struct tap_case cases[] = {
    {"special values in every function, operator and reduction", special_values},
};

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "compiler") == 0)
        return compiler_main(argc - 2, argv + 2);
    compiling_start();
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    compiling_end();
    return failed;
}
