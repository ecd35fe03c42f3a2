/* The estimate of reductions, calibrated: matrix products from K = 64 to 65,536, and long sums.
 * Honest fp32 in any order passes fp32; operands rounded to TF32 fail it and pass tf32; cut off
 * they fail tf32; bf16's fail tf32 and pass bf16; an accumulator that truncates passes tf32 and,
 * over long positive sums, fails fp32. CUTEPILOT_TEST_LONG=1 takes more of everything, and then
 * every method in every class on every kind of data, for the table of calibration.py. */
#include "emulate.h"

static const char product[] = "task t \"T\"\ndim M = %d, N = %d, K = %d\n"
                              "in a[M,K] : f32 ~ %s\nin b[K,N] : f32 ~ %s\nout c[M,N] : f32\n"
                              "c[i,j] = sum(k) a[i,k]*b[k,j]\naccuracy %s\n";

static bool take_long(void) {
    return getenv("CUTEPILOT_TEST_LONG") != NULL;
}

struct extreme {
    double least_rms, most_rms, most_worst;
};

static void note(struct extreme *x, const struct comparison *c) {
    x->least_rms = c->rms < x->least_rms ? c->rms : x->least_rms;
    x->most_rms = c->rms > x->most_rms ? c->rms : x->most_rms;
    x->most_worst = c->worst > x->most_worst ? c->worst : x->most_worst;
}

static const struct {
    int m, n, k;
    bool always;
} shapes[] = {{16, 16, 64, true},
              {10, 10, 512, true},
              {6, 6, 4096, true},
              {4, 8, 16384, false},
              {4, 6, 65536, true}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static bool product_of(struct fixture *f, size_t shape, const char *dist, const char *class) {
    char text[512];
    snprintf(text, sizeof text, product, shapes[shape].m, shapes[shape].n, shapes[shape].k, dist,
             dist, class);
    return (shapes[shape].always || take_long()) && fixture_text(f, text);
}

/* Kinds on which a rule must hold; -1 ends the list. */
static const int all_kinds[] = {DATA_STATED, DATA_SIGNED, DATA_WIDE,     DATA_ONEHOT, DATA_SORTED,
                                DATA_TILE,   DATA_SPIKES, DATA_CONSTANT, -1};
static const int signed_kinds[] = {DATA_SIGNED, -1};

struct rule {
    const char *name, *class;
    enum order order;
    enum operand operand;
    int k_least, k_most;
    const int *kinds; /* all pass, or all fail */
    bool pass;
};

static const struct rule rules[] = {
    {"sequential", "fp32", ORDER_SEQUENTIAL, OPERAND_FP32, 1, 4096, all_kinds, true},
    {"backwards", "fp32", ORDER_BACKWARDS, OPERAND_FP32, 1, 4096, all_kinds, true},
    {"fused", "fp32", ORDER_FUSED, OPERAND_FP32, 1, 4096, all_kinds, true},
    {"blocked", "fp32", ORDER_BLOCKED, OPERAND_FP32, 1, 1 << 20, all_kinds, true},
    {"pairwise", "fp32", ORDER_PAIRWISE, OPERAND_FP32, 1, 1 << 20, all_kinds, true},
    {"Kahan", "fp32", ORDER_KAHAN, OPERAND_FP32, 1, 1 << 20, all_kinds, true},
    {"TF32 as fp32", "fp32", ORDER_FUSED, OPERAND_TF32, 64, 1 << 20, signed_kinds, false},
    {"TF32", "tf32", ORDER_FUSED, OPERAND_TF32, 64, 1 << 20, all_kinds, true},
    {"TF32 in the tensor core", "tf32", ORDER_TRUNCATED, OPERAND_TF32, 64, 1 << 20, all_kinds,
     true},
    {"fp32 as tf32", "tf32", ORDER_SEQUENTIAL, OPERAND_FP32, 1, 4096, all_kinds, true},
    {"3xTF32 in the tensor core", "tf32", ORDER_TRUNCATED, OPERAND_FP32, 64, 1 << 20, all_kinds,
     true},
    {"bf16 as tf32", "tf32", ORDER_FUSED, OPERAND_BF16, 64, 1 << 20, signed_kinds, false},
    {"bf16", "bf16", ORDER_FUSED, OPERAND_BF16, 64, 1 << 20, all_kinds, true},
    {"bf16 in the tensor core", "bf16", ORDER_TRUNCATED, OPERAND_BF16, 64, 1 << 20, all_kinds,
     true},
};

static void try_rule(const struct rule *r, size_t shape, const char *dist, struct extreme *seen) {
    struct fixture f = {0};
    int k = shapes[shape].k;
    if (k < r->k_least || k > r->k_most || !product_of(&f, shape, dist, r->class))
        return;
    for (size_t i = 0; r->kinds[i] >= 0 && (i < 2 || k <= 4096 || take_long()); i++) {
        enum data_kind kind = (enum data_kind)r->kinds[i];
        fixture_data(&f, kind, 40 + shape);
        struct comparison c = run_kernel(&f, (struct kernel){r->order, r->operand, 1});
        note(seen, &c);
        CHECKF(c.pass == r->pass, "%s, %s, K = %d, %s: rms %.3g worst %.3g, limits %g %g", r->name,
               dist, k, data_name(kind), c.rms, c.worst, c.rms_limit, c.worst_limit);
    }
    fixture_end(&f);
}

static void products(void) {
    static const char *const dists[] = {"uniform(0,1)", "normal(0,1)"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct extreme x = {.least_rms = INFINITY};
        for (size_t s = 0; s < SHAPES; s++)
            for (size_t d = 0; d < 2; d++)
                try_rule(&rules[i], s, dists[d], &x);
        printf("# %s judged as %s: rms %.3g to %.3g, worst %.3g\n", rules[i].name, rules[i].class,
               x.least_rms, x.most_rms, x.most_worst);
    }
}

/* On positive data a bias does not average out. */
static void biases_fail_on_positive_data(void) {
    static const struct rule biased[] = {
        {"TF32 cut off", "tf32", ORDER_FUSED, OPERAND_TF32_CUT, 64, 65536, NULL, false},
        {"TF32 cut off in the tensor core", "tf32", ORDER_TRUNCATED, OPERAND_TF32_CUT, 64, 65536,
         NULL, false},
        {"truncating accumulation", "fp32", ORDER_TRUNCATED, OPERAND_FP32, 16384, 1 << 20, NULL,
         false},
    };
    static const int stated[] = {DATA_STATED, -1};
    for (size_t i = 0; i < sizeof biased / sizeof *biased; i++) {
        struct extreme x = {.least_rms = INFINITY};
        struct rule r = biased[i];
        r.kinds = stated;
        for (size_t s = 0; s < SHAPES; s++)
            try_rule(&r, s, "uniform(0,1)", &x);
        printf("# %s judged as %s: rms %.3g to %.3g\n", r.name, r.class, x.least_rms, x.most_rms);
    }
}

/* What one kernel is worth in a class, on both distributions and all kinds of data. */
static void tabulate(struct fixture *f, size_t shape, const char *dist) {
    static const enum operand operands[] = {OPERAND_FP32, OPERAND_TF32, OPERAND_TF32_CUT,
                                            OPERAND_BF16};
    static const enum accuracy classes[] = {ACCURACY_FP32, ACCURACY_TF32, ACCURACY_BF16};
    char subject[64];
    snprintf(subject, sizeof subject, "product %s K=%d", dist, shapes[shape].k);
    for (int kind = 0; kind < DATA_COUNT; kind++)
        for (size_t a = 0; a < sizeof classes / sizeof *classes; a++) {
            f->task->accuracy = classes[a];
            fixture_data(f, (enum data_kind)kind, 60 + shape);
            for (size_t o = 0; o < sizeof operands / sizeof *operands; o++)
                for (int order = 0; order < ORDER_COUNT; order++) {
                    struct kernel k = {(enum order)order, operands[o], 1};
                    bool tensor_core = order == ORDER_FUSED || order == ORDER_TRUNCATED;
                    if (operands[o] != OPERAND_FP32 && !tensor_core)
                        continue;
                    struct comparison c = run_kernel(f, k);
                    note_result(subject, k, classes[a], data_name((enum data_kind)kind), &c);
                }
        }
}

static void every_method_in_every_class(void) {
    static const char *const dists[] = {"uniform(0,1)", "normal(0,1)"};
    if (!take_long())
        SKIP("CUTEPILOT_TEST_LONG is not set");
    for (size_t s = 0; s < SHAPES; s++)
        for (size_t d = 0; d < 2; d++) {
            struct fixture f = {0};
            CHECK(product_of(&f, s, dists[d], "fp32") &&
                  data_scale_find(f.in, 1, &f.scale, &f.err));
            tabulate(&f, s, dists[d]);
            fixture_end(&f);
        }
}

/* Long rows of other reductions, and what must fail on them. */
static const struct {
    const char *name, *text;
} long_rows[] = {
    {"sum", "out y[B] : f32\ny[i] = sum(k) x[i,k]\n"},
    {"mean", "out y[B] : f32\ny[i] = mean(k) x[i,k]\n"},
    {"norm", "out y[B,D] : f32\ny[i,j] = x[i,j]/sqrt(sum(k) x[i,k]*x[i,k])\n"},
    {"softmax", "let m[i] = max(j) x[i,j]\nlet s[i] = sum(j) exp(x[i,j] - m[i])\n"
                "out y[B,D] : f32\ny[i,j] = exp(x[i,j] - m[i])/s[i]\n"},
    {"layer norm", "let m[i] = mean(j) x[i,j]\nlet v[i] = mean(j) (x[i,j] - m[i])*(x[i,j] - m[i])\n"
                   "out y[B,D] : f32\ny[i,j] = (x[i,j] - m[i])*rsqrt(v[i] + 0.00001)\n"},
    {"loss", "out y : f32\ny = mean(i,j) (x[i,j] - 0.5)*(x[i,j] - 0.5)\n"},
    {"log sum exp", "let m[i] = max(j) x[i,j]\nout y[B] : f32\n"
                    "y[i] = m[i] + log(sum(j) exp(x[i,j] - m[i]))\n"},
};

static bool long_row(struct fixture *f, size_t i, int b, int d) {
    char text[512];
    snprintf(text, sizeof text,
             "task t \"T\"\ndim B = %d, D = %d\nin x[B,D] : f32 ~ uniform(0,1)\n%s", b, d,
             long_rows[i].text);
    return fixture_text(f, text);
}

static void long_rows_are_honest(void) {
    for (size_t i = 0; i < sizeof long_rows / sizeof *long_rows; i++) {
        struct extreme x = {.least_rms = INFINITY};
        struct fixture f;
        if (long_row(&f, i, 3, i == 5 ? 1300 : 4096))
            for (size_t j = 0; all_kinds[j] >= 0; j++) {
                fixture_data(&f, (enum data_kind)all_kinds[j], 5);
                for (int o = 0; o < ORDER_TRUNCATED; o += take_long() ? 1 : 2) {
                    struct kernel k = {(enum order)o, OPERAND_FP32, 1};
                    struct comparison c = run_kernel(&f, k);
                    note(&x, &c);
                    CHECKF(c.pass, "%s, order %d on %s: rms %g worst %g", long_rows[i].name, o,
                           data_name((enum data_kind)all_kinds[j]), c.rms, c.worst);
                }
            }
        printf("# %s: rms up to %.2f, worst %.2f\n", long_rows[i].name, x.most_rms, x.most_worst);
        fixture_end(&f);
    }
}

static void a_share_of_a_long_reduction_fails(void) {
    static const double shares[] = {0.001, 0.5, 0.999};
    for (size_t i = 0; i < sizeof long_rows / sizeof *long_rows; i++)
        for (size_t s = 0; s < 3; s++) {
            struct fixture f;
            bool failed = false;
            if (long_row(&f, i, 2, take_long() ? 65536 : 8192)) {
                fixture_data(&f, DATA_STATED, 6);
                failed |= !run_kernel(&f, (struct kernel){ORDER_PAIRWISE, 0, shares[s]}).pass;
                if (!failed) {
                    fixture_data(&f, DATA_SIGNED, 6);
                    failed |= !run_kernel(&f, (struct kernel){ORDER_PAIRWISE, 0, shares[s]}).pass;
                }
            }
            CHECKF(failed, "%s: reading %g of it passes", long_rows[i].name, shares[s]);
            fixture_end(&f);
        }
}

static const struct tap_case cases[] = {
    {"matrix products", products},
    {"biases fail on positive data", biases_fail_on_positive_data},
    {"every method in every class", every_method_in_every_class},
    {"long rows, honestly summed", long_rows_are_honest},
    {"a share of a long reduction fails", a_share_of_a_long_reduction_fails},
};
TAP_CASES(cases)
