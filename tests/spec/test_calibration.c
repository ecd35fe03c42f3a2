/* The estimate, calibrated: on every smoke task and every kind of data, honest fp32 evaluations
 * pass with room, and wrong, lazy or less precise ones fail on at least one kind. */
#include "fixture.h"

#include "spec/convert_value.h"

typedef float float_fn(float x, float y);

/* Ways to write the same function in fp32. x is the element; y the second input or the bias. */
static float relu(float x, float y) {
    (void)y;
    return isnan(x) ? x : x > 0 ? x : 0;
}

static float gelu_plain(float x, float y) {
    (void)y;
    return 0.5f * x * (1.0f + erff(x * 0.70710678f));
}
static float gelu_divided(float x, float y) {
    (void)y;
    return x * (0.5f * (1.0f + erff(x / 1.41421356f)));
}
static float gelu_fma(float x, float y) {
    float h = 0.5f * x;
    (void)y;
    return fmaf(h, erff(x * 0.70710678f), h);
}
static float gelu_erfc(float x, float y) {
    (void)y;
    return 0.5f * x * erfcf(-x * 0.70710678f);
}

static float mul_add_plain(float a, float b) {
    return a * b + a;
}
static float mul_add_fma(float a, float b) {
    return fmaf(a, b, a);
}
static float mul_add_factored(float a, float b) {
    return a * (b + 1.0f);
}

static float swiglu_exp(float a, float b) {
    return a * (1.0f / (1.0f + expf(-a))) * b;
}
static float swiglu_divided(float a, float b) {
    return a / (1.0f + expf(-a)) * b;
}
static float swiglu_exp2(float a, float b) {
    return a * (1.0f / (1.0f + exp2f(a * -1.44269504f))) * b;
}
static float swiglu_regrouped(float a, float b) {
    return (a * b) * (1.0f / (1.0f + expf(-a)));
}

static float tanh_exp(float x) {
    return 1.0f - 2.0f / (expf(2.0f * x) + 1.0f);
}
static float tanh_exp2(float x) {
    return 1.0f - 2.0f / (exp2f(2.88539008f * x) + 1.0f);
}
static float inner(float t) {
    return 0.7978845608f * (t + 0.044715f * t * t * t);
}
static float inner_factored(float t) {
    return t * fmaf(t * t, 0.0356774081f, 0.7978845608f);
}

static float bias_gelu_tanh(float x, float b) {
    float t = x + b;
    return 0.5f * t * (1.0f + tanhf(inner(t)));
}
static float bias_gelu_exp(float x, float b) {
    float t = x + b;
    return 0.5f * t * (1.0f + tanh_exp(inner(t)));
}
static float bias_gelu_exp2(float x, float b) {
    float t = x + b, h = 0.5f * t;
    return fmaf(h, tanh_exp2(inner_factored(t)), h);
}
static float bias_gelu_sigmoid(float x, float b) {
    float t = x + b;
    return t / (1.0f + expf(-2.0f * inner_factored(t)));
}

static const struct subject {
    const char *name;
    bool bias; /* the second input has one row */
    float_fn *honest[4];
} subjects[] = {
    {"relu", false, {relu}},
    {"gelu", false, {gelu_plain, gelu_divided, gelu_fma, gelu_erfc}},
    {"mul_add", false, {mul_add_plain, mul_add_fma, mul_add_factored}},
    {"swiglu", false, {swiglu_exp, swiglu_divided, swiglu_exp2, swiglu_regrouped}},
    {"bias_gelu", true, {bias_gelu_tanh, bias_gelu_exp, bias_gelu_exp2, bias_gelu_sigmoid}},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects, MOST = 16384 };

static float second(const struct fixture *f, const struct subject *s, size_t i) {
    const float *b = f->inputs[1];
    return b ? b[s->bias ? i % (size_t)f->in->dims[1] : i] : 0;
}

static size_t compute(const struct fixture *f, const struct subject *s, float_fn *fn, float *y) {
    const float *x = f->inputs[0];
    size_t n = (size_t)f->in->tensors[0].count;
    for (size_t i = 0; i < n; i++)
        y[i] = fn(x[i], second(f, s, i));
    return n;
}

static struct comparison judge(const struct fixture *f, const float *y) {
    struct comparison c;
    reference_compare(f->in, &f->refs[0], y, 2, &c);
    return c;
}

static void honest_evaluations_pass(void) {
    static float y[MOST];
    for (size_t k = 0; k < SUBJECTS; k++) {
        double rms = 0, worst = 0;
        for (size_t check = 0; check < 4; check++) {
            struct fixture f;
            bool ok = fixture_smoke(&f, subjects[k].name, check);
            for (int kind = 0; ok && kind < DATA_COUNT; kind++) {
                fixture_data(&f, (enum data_kind)kind, 100 + check);
                for (int h = 0; h < 4 && subjects[k].honest[h]; h++) {
                    compute(&f, &subjects[k], subjects[k].honest[h], y);
                    struct comparison c = judge(&f, y);
                    rms = c.rms > rms ? c.rms : rms;
                    worst = c.worst > worst ? c.worst : worst;
                    CHECKF(c.pass, "%s form %d on %s: worst %g rms %g nonfinite %d at %g got %g",
                           subjects[k].name, h, data_name((enum data_kind)kind), c.worst, c.rms,
                           (int)c.nonfinite, c.first[0].expected, c.first[0].got);
                }
            }
            fixture_end(&f);
        }
        printf("# %s: honest forms reach rms %.2f of 8, worst %.2f of 32\n", subjects[k].name, rms,
               worst);
        CHECKF(rms < 5 && worst < 20, "%s has room", subjects[k].name);
    }
}

/* Dishonest or less precise outputs, made from an honest one. */
struct attempt {
    const struct fixture *f;
    const struct subject *s;
    float *y;
    size_t n;
};

static void off_by_a_thousandth(struct attempt *t) {
    t->y[t->n / 2] *= 1.001f;
}
static void zeros(struct attempt *t) {
    memset(t->y, 0, t->n * sizeof *t->y);
}
static void constant(struct attempt *t) {
    for (size_t i = 0; i < t->n; i++)
        t->y[i] = 0.5f;
}
static void shuffled(struct attempt *t) {
    for (size_t i = 0; i + 1 < t->n; i += 2) {
        float swap = t->y[i];
        t->y[i] = t->y[i + 1];
        t->y[i + 1] = swap;
    }
}
static void partly_poisoned(struct attempt *t) {
    for (size_t i = t->n - t->n / 100 - 1; i < t->n; i++)
        t->y[i] = -123.25f;
}
static void copied(struct attempt *t) {
    memcpy(t->y, t->f->inputs[0], t->n * sizeof *t->y);
}
static void flushed(struct attempt *t) {
    for (size_t i = 0; i < t->n; i++)
        t->y[i] = fabsf(t->y[i]) < 0x1p-126f ? 0 : t->y[i];
}
static void without_nan(struct attempt *t) {
    for (size_t i = 0; i < t->n; i++)
        t->y[i] = isnan(t->y[i]) ? 0 : t->y[i];
}
static void round_all(struct attempt *t, enum dtype type) {
    const float *x = t->f->inputs[0];
    for (size_t i = 0; i < t->n; i++) {
        float a = (float)round_to(type, x[i]), b = (float)round_to(type, second(t->f, t->s, i));
        t->y[i] = (float)round_to(type, t->s->honest[0](a, b));
    }
}
static void in_bf16(struct attempt *t) {
    round_all(t, DTYPE_BF16);
}
static void in_f16(struct attempt *t) {
    round_all(t, DTYPE_F16);
}

static void every_cheat_fails_somewhere(void) {
    static const struct {
        const char *name;
        void (*spoil)(struct attempt *);
    } cheats[] = {
        {"off by a thousandth", off_by_a_thousandth},
        {"zeros", zeros},
        {"constant", constant},
        {"shuffled", shuffled},
        {"partly poisoned", partly_poisoned},
        {"copied input", copied},
        {"flushed subnormals", flushed},
        {"NaN swallowed", without_nan},
        {"bf16", in_bf16},
        {"f16", in_f16},
    };
    enum { MORE = 4 };
    static float y[MOST];
    for (size_t k = 0; k < SUBJECTS; k++) {
        unsigned failed[sizeof cheats / sizeof *cheats] = {0};
        for (int kind = 0; kind < DATA_COUNT + MORE; kind++) {
            struct fixture f;
            bool more = kind >= DATA_COUNT; /* subnormal numbers are drawn for some tensors alone */
            if (fixture_smoke(&f, subjects[k].name, 2) &&
                fixture_data(&f, more ? DATA_SUBNORMAL : (enum data_kind)kind,
                             more ? (uint64_t)kind : 7))
                for (size_t c = 0; c < sizeof cheats / sizeof *cheats; c++) {
                    struct attempt t = {&f, &subjects[k], y, 0};
                    t.n = compute(&f, &subjects[k], subjects[k].honest[0], y);
                    cheats[c].spoil(&t);
                    failed[c] += !judge(&f, y).pass;
                }
            fixture_end(&f);
        }
        for (size_t c = 0; c < sizeof cheats / sizeof *cheats; c++)
            CHECKF(failed[c] > 0, "%s passes %s on every kind", cheats[c].name, subjects[k].name);
    }
}

/* The class is told apart from being wrong: bf16 arithmetic is inaccurate, not wrong. */
static void bf16_is_inaccurate_not_wrong(void) {
    static const enum data_kind kinds[] = {DATA_STATED, DATA_SIGNED, DATA_WIDE,
                                           DATA_SORTED, DATA_TILE,   DATA_SPIKES};
    static float y[MOST];
    double least = INFINITY;
    for (size_t k = 0; k < SUBJECTS; k++)
        for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++) {
            struct fixture f;
            if (fixture_smoke(&f, subjects[k].name, 2) && fixture_data(&f, kinds[j], 7)) {
                struct attempt t = {&f, &subjects[k], y, (size_t)f.in->tensors[0].count};
                in_bf16(&t);
                struct comparison c = judge(&f, y);
                CHECKF(!c.pass, "%s %s: rms %g", subjects[k].name, data_name(kinds[j]), c.rms);
                least = c.rms < least ? c.rms : least;
                if (kinds[j] == DATA_STATED)
                    CHECKF(c.pass_looser, "%s: worst %g rms %g", subjects[k].name, c.worst, c.rms);
                zeros(&t);
                CHECKF(!judge(&f, y).pass_looser, "%s: zeros are wrong", subjects[k].name);
            }
            fixture_end(&f);
        }
    printf("# bf16 is off by an rms of %.3g at the least\n", least);
}

/* One generic element, off by a thousandth, on each kind where values are generic. */
static void a_thousandth_shows_everywhere(void) {
    static const enum data_kind kinds[] = {DATA_STATED, DATA_SIGNED, DATA_SORTED, DATA_TILE};
    static float y[MOST];
    for (size_t k = 0; k < SUBJECTS; k++)
        for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++) {
            struct fixture f;
            if (fixture_smoke(&f, subjects[k].name, 2) && fixture_data(&f, kinds[j], 8)) {
                size_t n = compute(&f, &subjects[k], subjects[k].honest[0], y), i = n / 3;
                while (!(fabsf(y[i]) > 0.05f))
                    i++;
                y[i] *= 1.001f;
                CHECKF(!judge(&f, y).pass, "%s %s", subjects[k].name, data_name(kinds[j]));
            }
            fixture_end(&f);
        }
}

static const struct tap_case cases[] = {
    {"honest evaluations pass with room", honest_evaluations_pass},
    {"every cheat fails on some kind", every_cheat_fails_somewhere},
    {"bf16 is inaccurate, not wrong", bf16_is_inaccurate_not_wrong},
    {"a thousandth shows", a_thousandth_shows_everywhere},
};
TAP_CASES(cases)
