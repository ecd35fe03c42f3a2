/* Values against plain C, estimates against what they promise, and the rules for NaN. */
#include "fixture.h"

#include <time.h>

/* y = expression of x[i], a[i] (f32), n[i] (i32), m[i] (bool), over N elements. */
static bool eval1(struct fixture *f, const char *type, const char *body, const double *x,
                  const double *a, size_t n) {
    char text[1024];
    double zeros[64] = {0};
    snprintf(text, sizeof text,
             "task t \"T\"\ndim N = %zu\nin x[N] : f32 ~ ones\nin a[N] : f32 ~ ones\n"
             "in n[N] : i32 ~ ones\nout y[N] : %s\ny[i] = %s\n",
             n, type, body);
    if (!fixture_text(f, text))
        return false;
    fixture_set(f, "x", x, n);
    fixture_set(f, "a", a ? a : x, n);
    fixture_set(f, "n", zeros, n);
    return fixture_eval(f, 1);
}

static void values(void) {
    double x[4] = {0.5, -1.25, 3, 0.0078125};
    static const struct {
        const char *body;
        double want[4];
    } rows[] = {
        {"x[i] + 2*x[i] - 1", {0.5, -4.75, 8, -0.9765625}},
        {"x[N-1-i]", {0.0078125, 3, -1.25, 0.5}},
        {"x[i//2]", {0.5, 0.5, -1.25, -1.25}},
        {"x[(i+1)%N] - x[0]", {-1.75, 2.5, -0.4921875, 0}},
        {"i*10 + N", {4, 14, 24, 34}},
        {"(i-2)//2 + (i-3)%2*10", {9, -1, 10, 0}},
        {"i/2", {0, 0.5, 1, 1.5}},
        {"maximum(x[i], 0)", {0.5, 0, 3, 0.0078125}},
        {"minimum(x[i], i)", {0, -1.25, 2, 0.0078125}},
        {"clamp(x[i], -1, 1)", {0.5, -1, 1, 0.0078125}},
        {"if(x[i] > 0 && i != 2, x[i], -1)", {0.5, -1, -1, 0.0078125}},
        {"if(i > 0, x[i-1], 7)", {7, 0.5, -1.25, 3}},
        {"if(i + 1 < N, x[i+1], if(i == 3, 9, x[i]))", {-1.25, 3, 0.0078125, 9}},
        {"abs(x[i]) + abs(i-2)", {2.5, 2.25, 3, 1.0078125}},
        {"floor(x[i])", {0, -2, 3, 0}},
        {"-x[i]", {-0.5, 1.25, -3, -0.0078125}},
        {"if(x[i] < -1 || x[i] >= 3, 1, 0)", {0, 1, 1, 0}},
        {"if(!(x[i] == 3), 1, 0)", {1, 1, 0, 1}},
        {"if((x[i] > 0) == (i > 0), 1, 0)", {0, 0, 1, 1}},
        {"pow(x[i], 2)", {0.25, 1.5625, 9, 0x1p-14}},
        {"x[i]/8", {0.0625, -0.15625, 0.375, 0x1p-10}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        if (eval1(&f, "f32", rows[k].body, x, NULL, 4))
            for (int i = 0; i < 4; i++)
                CHECKF(f.refs[0].value[i] == rows[k].want[i], "%s [%d]: %g", rows[k].body, i,
                       f.refs[0].value[i]);
        fixture_end(&f);
    }
}

static void functions_agree_with_libm(void) {
    double x[4] = {0.5, 1.25, 3, 40};
    static const struct {
        const char *body;
        double (*f)(double);
    } rows[] = {{"exp(x[i])", exp}, {"log(x[i])", log}, {"sqrt(x[i])", sqrt}, {"tanh(x[i])", tanh},
                {"erf(x[i])", erf}, {"sin(x[i])", sin}, {"cos(x[i])", cos}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        if (eval1(&f, "f32", rows[k].body, x, NULL, 4))
            for (int i = 0; i < 4; i++) {
                double v = rows[k].f(x[i]), e = f.refs[0].estimate[i];
                CHECKF(f.refs[0].value[i] == v, "%s", rows[k].body);
                CHECKF(e > 0 && e <= 45 * 0x1p-24 * fmax(1, fabs(v)), "%s: %g", rows[k].body, e);
            }
        fixture_end(&f);
    }
    struct fixture f;
    if (eval1(&f, "f32", "sigmoid(-x[i]) + rsqrt(x[i])", x, NULL, 4))
        for (int i = 0; i < 4; i++) {
            double v = 1 / (1 + exp(x[i])) + 1 / sqrt(x[i]);
            CHECK(fabs(f.refs[0].value[i] - v) < 1e-14);
        }
    fixture_end(&f);
}

enum { EXACT, JUDGED, OPEN }; /* estimate 0, between, infinite */

static void nan_and_infinity(void) {
    static const struct {
        const char *type, *body;
        double x, a, want;
        int estimate;
    } rows[] = {
        {"f32", "maximum(x[i], 0)", NAN, 0, NAN, EXACT},
        {"f32", "minimum(0, x[i])", NAN, 0, NAN, EXACT},
        {"f32", "clamp(x[i], 0, 1)", NAN, 0, NAN, EXACT},
        {"f32", "x[i] + a[i]", INFINITY, 1, INFINITY, EXACT},
        {"f32", "x[i] - a[i]", INFINITY, INFINITY, NAN, OPEN},
        {"f32", "x[i] - a[i]", INFINITY, NAN, NAN, EXACT},
        {"f32", "x[i] * a[i]", INFINITY, 0, NAN, OPEN},
        {"f32", "x[i] / a[i]", INFINITY, INFINITY, NAN, OPEN},
        {"f32", "x[i] / a[i]", 0, 0, NAN, OPEN},
        {"f32", "x[i] / a[i]", 1, 0, INFINITY, EXACT},
        {"f32", "1 / x[i]", INFINITY, 0, 0, JUDGED},
        /* What an infinity is multiplied with, or divided by, may have either sign in fp32. */
        {"f32", "x[i] * cos(a[i]/2)", INFINITY, 3.1415927410125732, -INFINITY, OPEN},
        {"f32", "x[i] / cos(a[i]/2)", INFINITY, 3.1415927410125732, -INFINITY, OPEN},
        {"f32", "x[i] * cos(a[i]/2)", INFINITY, 3, INFINITY, EXACT},
        /* A kernel may have NaN for an infinity that went through a sum, and for what follows. */
        {"f32", "1 / (sum(k < 2) (x[i] + k))", INFINITY, 0, 0, OPEN},
        {"f32", "1 / (sum(k < 2) (x[i] + k))", 2, 0, 0.2, JUDGED},
        {"f32", "exp(-(sum(k < 2) (x[i] + k)))", INFINITY, 0, 0, OPEN},
        {"f32", "minimum(a[i], sum(k < 2) (x[i] + k))", INFINITY, 3, 3, OPEN},
        /* … also an infinity of finite data, times a difference that may be multiplied out */
        {"f32", "exp(-1 / x[i] * (a[i] - 1))", 0, 3, 0, OPEN},
        {"f32", "max(m < 2) if(m > 0, a[i], sum(k < 2) (x[i] + k))", -INFINITY, 3, 3, OPEN},
        {"f32", "max(m < 2) if(m < 1, a[i], sum(k < 2) (x[i] + k))", -INFINITY, 3, 3, OPEN},
        {"f32", "max(m < 2) if(m < 1, a[i], x[i])", -INFINITY, 3, 3, EXACT},
        {"f32", "if(a[i] < sum(k < 2) (x[i] + k), 1, inf)", INFINITY, 3, 1, OPEN},
        {"f32", "sqrt(x[i])", -1, 0, NAN, OPEN},
        {"f32", "sqrt(x[i])", 0, 0, 0, EXACT},
        {"f32", "log(x[i])", -1, 0, NAN, OPEN},
        {"f32", "log(x[i])", 0, 0, -INFINITY, EXACT},
        {"f32", "pow(x[i], a[i])", -2, 0.5, NAN, OPEN},
        {"f32", "pow(x[i], a[i])", 0, -1, INFINITY, EXACT},
        {"f32", "pow(x[i], a[i])", NAN, 2, NAN, EXACT},
        {"f32", "exp(x[i])", 1000, 0, INFINITY, EXACT},
        {"f32", "exp(x[i])", 100, 0, INFINITY, EXACT}, /* finite in fp64, not in fp32 */
        {"f32", "1 / exp(x[i])", 100, 0, 3.7200759760208356e-44, OPEN},
        {"f32", "tanh(x[i])", INFINITY, 0, 1, JUDGED},
        {"f32", "sigmoid(x[i])", -INFINITY, 0, 0, EXACT},
        {"f32", "if(x[i] > 0, 1, 2)", NAN, 0, 2, EXACT},
        {"f32", "if(x[i] != a[i], 1, 2)", NAN, NAN, 1, EXACT},
        {"f32", "if(x[i] - a[i] > 0, 1, 2)", INFINITY, INFINITY, 2, JUDGED},
        {"f32", "if(x[i] - a[i] > 0, 1, inf)", INFINITY, INFINITY, INFINITY, OPEN},
        {"f32", "0.5*x[i]*(1 + erf(x[i]*0.7071067811865476))", -INFINITY, 0, NAN, OPEN},
        {"f32", "0.5*x[i]*(1 + erf(x[i]*0.7071067811865476))", INFINITY, 0, INFINITY, EXACT},
        {"f16", "x[i]", 65520, 0, INFINITY, EXACT},
        {"f16", "x[i]", 65519, 0, 65519, JUDGED},
        {"f16", "x[i]", 1, 0, 1, EXACT},
        {"bf16", "x[i]", 1.001, 0, 1.0010000467300415, JUDGED},
        {"f32", "x[i]", 1.5, 0, 1.5, EXACT},
        {"i32", "floor(x[i])", 3e9, 0, 3e9, OPEN},
        {"i32", "floor(x[i])", 2.5, 0, 2, EXACT},
        {"i32", "floor(x[i]*0.1)", 10, 0, 1, JUDGED}, /* 0.1 may round either way */
        {"i8", "n[i] + 100*(i + 1)", 0, 0, 100, EXACT},
        {"i8", "n[i] + 200*(i + 1)", 0, 0, 200, OPEN},
        {"i32", "3 // n[i]", 0, 0, NAN, OPEN},
        {"bool", "x[i] > a[i]", 1, 0, 1, EXACT},
        {"bool", "x[i]*0.1 > a[i]", 10, 1, 0, JUDGED},
        {"bool", "x[i]*0.1 > a[i] && i > 5", 10, 1, 0, EXACT},
        {"f32", "x[i]*0", -3, 0, 0, EXACT},
        {"f32", "x[i]*x[i]", 0x1p-100, 0, 0x1p-200, JUDGED},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        if (eval1(&f, rows[k].type, rows[k].body, &rows[k].x, &rows[k].a, 1)) {
            double v = f.refs[0].value[0], e = f.refs[0].estimate[0];
            int got = isinf(e) ? OPEN : e == 0 ? EXACT : JUDGED;
            CHECKF(isnan(rows[k].want) ? isnan(v) : v == rows[k].want, "row %zu %s: %.17g", k,
                   rows[k].body, v);
            CHECKF(got == rows[k].estimate, "row %zu %s: estimate %g", k, rows[k].body, e);
        }
        fixture_end(&f);
    }
}

/* Sums of products that leave terms out, where one of x, w and z holds something: n, its result is
 * NaN and must come out so; o, it is not judged; j, it is. */
static void nan_among_terms(void) {
    enum { N = 6, W = 3 };
    static const struct {
        const char *body, *in;
        int at;
        double what;
        const char *want;
    } rows[] = {
        {"sum(r < 3) pad(x[i+r-1], 0)*w[r]", "x", 2, 2, "jjjjjj"},
        {"sum(r < 3) pad(x[i+r-1], 0)*w[r]", "x", 2, NAN, "onnnoo"},
        {"sum(r < 3) pad(x[i+r-1], 0)*w[r]", "x", 0, NAN, "nnoooo"},
        {"sum(r < 3) pad(x[i+r-1], 0)*w[r]", "x", 2, INFINITY, "oooooo"},
        /* Of what lies outside one kernel makes 0 times NaN, and another nothing. */
        {"sum(r < 3) pad(x[i+r-1], 0)*w[r]", "w", 0, NAN, "onnnnn"},
        {"sum(r < 3) pad(x[i+r-1], 0)*w[r]", "w", 2, NAN, "nnnnno"},
        {"sum(r < 3) pad(x[i+r-1], 0)*exp(w[r])", "w", 2, NAN, "nnnnno"},
        {"sum(r < 3, l < 500) pad(x[i+r-1], 0)*w[r]*(l + 1)", "x", 2, NAN, "onnnoo"},
        {"sum(r < 3, l < 500) pad(x[i+r-1], 0)*w[r]*(l + 1)", "w", 0, NAN, "onnnnn"},
        {"sum(r < 3) pad(x[(i+r)//2-1], 0)*w[r]", "w", 1, NAN, "onnnnn"},
        {"sum(r < 3) pad(x[m[i]+r-1], 0)*w[r]", "w", 1, NAN, "oooooo"},
        {"sum(r < 3) pad(x[i+r-1], z[0])*pad(z[r], 0)", "z", 0, NAN, "onnnnn"},
        {"maximum(sum(r < 3) pad(x[i+r-1], 0)*w[r], 0)", "x", 2, NAN, "onnnoo"},
        {"mean(k | k % 2 == i % 2) x[k]*z[k]", "x", 3, NAN, "ononon"},
        {"sum(k | z[k] > 1) x[k]*x[k]", "x", 3, NAN, "oooooo"},
        {"sum(k | x[k] > 0) x[k]*z[k]", "x", 3, NAN, "oooooo"},
        /* A guard that may go either way. */
        {"sum(k | z[k]*1.1 >= z[k] + z[k]*0.1) x[k]*z[k]", "x", 3, NAN, "oooooo"},
        {"sum(k | z[k]*1.1 < z[k] + z[k]*0.1) x[k]*z[i]", "x", 3, NAN, "oooooo"},
        {"sum(k | z[k]*1.1 >= z[k] + z[k]*0.1) x[k]", "x", 3, NAN, "oooooo"},
        {"sum(k <= i) x[k]*z[k]", "x", 2, NAN, "oonnnn"},
        {"sum(k < i) x[k]*z[k]", "x", 2, NAN, "ooonnn"},
        {"sum(i <= k < N) x[k]*z[k]", "z", 2, NAN, "nnnooo"},
        {"sum(k <= i) x[k]*z[k]", "z", 2, INFINITY, "oooooo"},
        {"sum(k <= i) x[k]*x[i-k]", "x", 4, NAN, "oooonn"},
        {"sum(k <= i) x[k]*if(z[k] > 1, 1, 0)", "x", 2, NAN, "oonnnn"},
        {"sum(k <= i | z[k] > 1) x[k]*x[k]", "x", 2, NAN, "oooooo"},
        {"sum(k <= i) x[k]*pad(z[k-1], 0)", "x", 0, NAN, "oooooo"},
        {"sum(k <= i) x[k]*pad(z[k-1], 0)", "x", 1, NAN, "onnnnn"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        char text[400];
        double v[N] = {1, 1, 1, 1, 1, 1};
        snprintf(text, sizeof text,
                 "task t \"T\"\ndim N = 6\nin x[N] : f32 ~ ones\nin z[N] : f32 ~ ones\n"
                 "in w[3] : f32 ~ ones\nin m[N] : i32 ~ randint(0,1)\nout y[N] : f32\n"
                 "y[i] = %s\n",
                 rows[k].body);
        v[rows[k].at] = rows[k].what;
        bool ok = fixture_text(&f, text) && fixture_data(&f, DATA_STATED, 1);
        if (ok) {
            fixture_set(&f, rows[k].in, v, rows[k].in[0] == 'w' ? W : N);
            ok = fixture_eval(&f, 1);
        }
        for (int i = 0; ok && i < N; i++) {
            double value = f.refs[0].value[i], e = f.refs[0].estimate[i];
            char got = isinf(e) ? 'o' : isnan(value) && e == 0 ? 'n' : 'j';
            CHECKF(got == rows[k].want[i], "%s, %s[%d] = %g: y[%d] is %c: %g +- %g", rows[k].body,
                   rows[k].in, rows[k].at, rows[k].what, i, got, value, e);
        }
        fixture_end(&f);
    }
}

static void estimates_follow_the_rules(void) {
    const double u = 0x1p-24;
    static const struct {
        const char *body;
        double x, a, units; /* expected estimate in u */
    } rows[] = {
        {"x[i] + a[i]", 1, 1, 2},
        {"x[i] * a[i]", 3, 1, 3},
        {"x[i] / a[i]", 3, 2, 1.5},
        {"(x[i] + a[i]) - a[i]", 1, 1024, 1025},
        {"(x[i] + a[i]) * 1024", 1, 0, 1024 * 1.41421356},
        {"sin(x[i] * 1)", 1000, 0, 562.4},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        if (eval1(&f, "f32", rows[k].body, &rows[k].x, &rows[k].a, 1)) {
            double e = f.refs[0].estimate[0] / u;
            CHECKF(fabs(e / rows[k].units - 1) < 0.02, "%s: %g units", rows[k].body, e);
        }
        fixture_end(&f);
    }
}

static void typed_lets_round(void) {
    struct fixture f;
    double x[3] = {1 + 0x1p-9, 1 + 0x1p-8 + 0x1p-20, 1 + 0x1p-8};
    if (fixture_text(&f, "task t \"T\"\nin x[3] : f32 ~ ones\nout y[3] : f32\n"
                         "out w[3] : f32\ny[i] = z[i]\nw[i] = v[i] - x[i]\n"
                         "let z[i] : bf16 = x[i]*1.0\nlet v[i] = x[i]\n")) {
        fixture_set(&f, "x", x, 3);
        if (fixture_eval(&f, 1)) {
            const struct reference *y = &f.refs[0], *w = &f.refs[1];
            CHECK(y->value[0] == 1 && y->estimate[0] == 0);
            CHECK(y->value[1] == 1 + 0x1p-7 && y->estimate[1] > 0x1p-8); /* near a boundary */
            CHECK(y->value[2] == 1 && y->estimate[2] > 0x1p-8);
            CHECK(w->value[0] == 0 && w->estimate[0] == 0);
        }
    }
    fixture_end(&f);
}

static void threads_do_not_matter(void) {
    struct fixture f;
    if (fixture_text(&f, "task t \"T\"\ndim R = 37, C = 129\nin x[R,C] : f32 ~ normal(0,1)\n"
                         "param b[C] : f32 ~ normal(0,1)\nout y[C,R] : f32\n"
                         "let t[i,j] = x[i,j]*b[j]\n"
                         "y[j,i] = if(j > 0, t[i,j-1], exp(t[i,j])) + b[C-1-j] + i\n") &&
        fixture_data(&f, DATA_SIGNED, 3)) {
        struct reference *kept = f.refs, one = f.refs[0];
        f.refs = NULL;
        f.nrefs = 0;
        for (unsigned threads = 1; threads <= 70; threads += 23)
            if (fixture_eval(&f, threads)) {
                CHECK(memcmp(one.value, f.refs[0].value, one.count * 8) == 0);
                CHECK(memcmp(one.estimate, f.refs[0].estimate, one.count * 8) == 0);
            }
        const float *x = f.inputs[0], *b = f.inputs[1];
        for (int j = 0; j < 129; j++)
            for (int i = 0; i < 37; i++) {
                double t0 =
                    j ? (double)x[i * 129 + j - 1] * b[j - 1] : exp((double)x[i * 129] * b[0]);
                double want = t0 + b[128 - j] + i;
                CHECKF(one.value[j * 37 + i] == want, "y[%d,%d]", j, i);
            }
        reference_release(kept, 1);
    }
    fixture_end(&f);
}

/* An inout tensor is read as it was, also where it has been written. */
static void inout_reads_the_old_content(void) {
    struct fixture f;
    double x[4] = {1, 2, 3, 4};
    if (fixture_text(&f, "task t \"T\"\ninout x[4] : f32 ~ ones\nout s : f32\n"
                         "x[i] = x[3-i] + (sum(k <= i) x[k])\ns = sum(k) x[k]\n")) {
        fixture_set(&f, "x", x, 4);
        if (fixture_eval(&f, 1)) {
            const double want[4] = {5, 6, 8, 11};
            CHECK(f.nrefs == 2 && f.refs[1].value[0] == 10);
            for (int i = 0; i < 4; i++)
                CHECK(f.refs[0].value[i] == want[i]);
        }
    }
    fixture_end(&f);
}

/* Estimates of sums, in u, within a tenth: of 100 ones; of terms in doubt; of the classes. */
static void estimates_of_reductions(void) {
    static const struct {
        const char *body, *class;
        double x; /* all of x[100]; y[100] is 1 */
        double units;
    } rows[] = {
        /* equal terms add up before they are squared: 5050; a random order: 100*(1e4/3 + 100/6) */
        {"sum(k) x[k]", "fp32", 1, 5083},
        {"sum(k < 1) x[k]", "fp32", 1, 1.22},
        {"max(k) x[k]", "fp32", 1, 0},
        {"max(k) x[k]*y[k]", "fp32", 3, 3},
        {"prod(k < 3) x[k]", "fp32", 3, 27 * 1.73},
        {"sum(k | k == 3) x[k]", "fp32", 3, 3 * 1.22},
        {"sum(k | x[k]*0.1 > 1) y[k]", "fp32", 10, 0x1p24 * 10}, /* no term is certain */
        {"sum(k) x[k]*y[k]*0", "fp32", 1, 0},
        {"sum(k < 1) x[k]*y[k]", "tf32", 1, 8192 * 0.8165},
        {"sum(k < 1) x[k]*y[k]", "bf16", 1, 65536 * 0.8165},
        {"sum(k < 1) x[k]", "tf32", 1, 4 * 1.22},
        /* the logarithm of the same number is off by the same amount each time */
        {"sum(k < 1) (log(x[k]) - 0.6931)", "fp32", 2, 1.76},
        {"sum(k) (log(x[k]) - 0.6931)", "fp32", 2, 176},
        {"mean(k) (log(x[k]) - 0.6931)", "fp32", 2, 1.76},
        {"sum(k | k % 2 == 0) (log(x[k]) - 0.6931)", "fp32", 2, 88},
        {"sum(k) if(k % 2 == 0, log(x[k]) - 0.6931, log(y[k] * 3) - 1.0986)", "fp32", 2, 90},
        {"sum(k) (log(x[k]) - 0.6931) * y[k]", "fp32", 2, 176},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        char text[256];
        double x[100], y[100];
        snprintf(text, sizeof text,
                 "task t \"T\"\nin x[100] : f32 ~ ones\nin y[100] : f32 ~ ones\nout o : f32\n"
                 "o = %s\naccuracy %s\n",
                 rows[k].body, rows[k].class);
        for (int i = 0; i < 100; i++) {
            x[i] = rows[k].x;
            y[i] = 1;
        }
        if (fixture_text(&f, text)) {
            fixture_set(&f, "x", x, 100);
            fixture_set(&f, "y", y, 100);
            if (fixture_eval(&f, 1)) {
                double e = f.refs[0].estimate[0] * 0x1p24;
                CHECKF(fabs(e - rows[k].units) <= 0.1 * rows[k].units, "%s (%s): %g units",
                       rows[k].body, rows[k].class, e);
            }
        }
        fixture_end(&f);
    }
}

/* A sum known to 2^-24 of 1e20 may be of either sign: what is flat on one side of 0 is not known
 * better than what may be on the other, with some room for what a step is multiplied with. */
static void flat_functions_of_uncertain_sums(void) {
    static const struct {
        const char *body;
        double least; /* that an error of the worst kind may be */
    } rows[] = {
        {"s * sigmoid(s)", 3e12}, {"s * (1 + tanh(s))", 3e12}, {"s * (1 + erf(s))", 3e12},
        {"maximum(s, 0)", 3e12},  {"sigmoid(s)", 1.05},        {"tanh(s)", 2.1},
    };
    const double x[3] = {1e20, -1e20, -3e12};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        char text[512];
        snprintf(text, sizeof text,
                 "task t \"T\"\ndim N = 3\nin x[N] : f32 ~ ones\nout y : f32\n"
                 "let s = sum(i) x[i]\ny = %s\n",
                 rows[k].body);
        if (fixture_text(&f, text)) {
            fixture_set(&f, "x", x, 3);
            if (fixture_eval(&f, 1))
                CHECKF(32 * f.refs[0].estimate[0] >= rows[k].least, "%s: %g", rows[k].body,
                       f.refs[0].estimate[0]);
        }
        fixture_end(&f);
    }
}

/* An input near zero times a weight: its format is coarse there. Beside another input nothing is
 * known of the class's smallest number. */
static void inputs_below_the_format(void) {
    static const struct {
        const char *class, *type, *sum;
        double least, most; /* of the estimate */
    } rows[] = {
        {"tf32", "f32", "let e[j] = exp(x[j])\ny = sum(j) e[j] * v[j]", 0x1p-140, 0x1p-135},
        {"tf32", "f32", "let e[j] : f32 = x[j]\ny = sum(j) v[j] * e[j]", 0x1p-140, 0x1p-135},
        {"fp32", "f32", "let e[j] = exp(x[j])\ny = sum(j) e[j] * v[j]", 0, 0x1p-148},
        {"tf32", "f16", "let e[j] = exp(x[j])\ny = sum(j) e[j] * v[j]", 0, 0x1p-138},
        {"tf32", "f32", "y = sum(j) x[j] * v[j]", 0, 0x1p-145},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        char text[512];
        bool half = rows[k].type[1] == '1';
        const double x[2] = {0.5, 0.25}, v[2] = {half ? 0 : 0x3p-149, half ? 0 : 0x5p-149};
        snprintf(text, sizeof text,
                 "task t \"T\"\ndim N = 2\nin x[N] : f32 ~ ones\nin v[N] : %s ~ ones\n"
                 "out y : f32\n%s\naccuracy %s\n",
                 rows[k].type, rows[k].sum, rows[k].class);
        if (fixture_text(&f, text)) {
            fixture_set(&f, "x", x, 2);
            fixture_set(&f, "v", v, 2);
            if (fixture_eval(&f, 1))
                CHECKF(f.refs[0].estimate[0] >= rows[k].least &&
                           f.refs[0].estimate[0] <= rows[k].most,
                       "%s, %s, %s: %g", rows[k].class, rows[k].type, rows[k].sum,
                       f.refs[0].estimate[0]);
        }
        fixture_end(&f);
    }
}

/* A weight that is nothing in the format of the class, times something large, where all larger
 * weights meet zeros: an honest kernel gives 0. */
static void factors_below_the_format(void) {
    static const struct {
        const char *class;
        double x, large;
        bool zero; /* is as good as the value */
    } rows[] = {
        {"bf16", -95.3, 2e14, true},  {"bf16", -80, 2e14, false}, {"f16", -18, 2e4, true},
        {"f16", -8, 2e4, false},      {"tf32", -96, 2e14, true},  {"tf32", -90, 2e14, false},
        {"fp32", -95.3, 2e14, false},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        char text[512];
        const double x[2] = {0, rows[k].x}, v[2] = {0, rows[k].large};
        snprintf(text, sizeof text,
                 "task t \"T\"\ndim N = 2\nin x[N] : f32 ~ ones\nin v[N] : f32 ~ ones\n"
                 "out y : f32\nlet e[j] = exp(x[j])\ny = sum(j) e[j] * v[j]\naccuracy %s\n",
                 rows[k].class);
        if (fixture_text(&f, text)) {
            double worst = f.in->task->accuracy == ACCURACY_FP32 ? 32 : 8;
            fixture_set(&f, "x", x, 2);
            fixture_set(&f, "v", v, 2);
            if (fixture_eval(&f, 1))
                CHECKF((worst * f.refs[0].estimate[0] >= f.refs[0].value[0]) == rows[k].zero,
                       "%s, exp(%g): %g of %g", rows[k].class, rows[k].x,
                       worst * f.refs[0].estimate[0], f.refs[0].value[0]);
        }
        fixture_end(&f);
    }
}

static void names_of_elements(void) {
    struct fixture f;
    if (fixture_text(&f, "task t \"T\"\ndim R = 3, C = 5\nout y[R,C] : f32\nout s : f32\n"
                         "y[i,j] = 1\ns = 2\n")) {
        CHECK(str_is(element_name(f.in, 0, 14, f.a), "y[2,4]"));
        CHECK(str_is(element_name(f.in, 1, 0, f.a), "s"));
    }
    fixture_end(&f);
}

/* Of the processor, both threads together: a busy machine's clock says little. */
static double seconds_of(struct fixture *f, const char *text) {
    struct timespec t0, t1;
    if (!fixture_text(f, text) || !fixture_data(f, DATA_STATED, 1))
        return INFINITY;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
    fixture_eval(f, 2);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    return (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
}

/* Limits with sanitizers in mind; the lines say what it really takes. */
static void fast_enough(void) {
    static const struct {
        const char *what, *text;
    } rows[] = {
        {"a million elements of gelu",
         "task t \"T\"\ndim N = 1048576\nin x[N] : f32 ~ normal(0,1)\nout y[N] : f32\n"
         "y[i] = 0.5*x[i]*(1 + erf(x[i]*0.7071067811865476))\n"},
        {"a product of 256x256x256",
         "task t \"T\"\ndim N = 256\nin a[N,N] : f32 ~ normal(0,1)\nin b[N,N] : f32 ~ normal(0,1)\n"
         "out c[N,N] : f32\nc[i,j] = sum(k) a[i,k]*b[k,j]\n"},
        {"the same with the second transposed",
         "task t \"T\"\ndim N = 256\nin a[N,N] : f32 ~ normal(0,1)\nin b[N,N] : f32 ~ normal(0,1)\n"
         "out c[N,N] : f32\nc[i,j] = sum(k) a[i,k]*b[j,k]\n"},
        {"a million terms to one number",
         "task t \"T\"\ndim N = 1024\nin a[N,N] : f32 ~ normal(0,1)\nout c : f32\n"
         "c = mean(i,k) (a[i,k] - 1)*(a[i,k] - 1)\n"},
        {"prefix sums of rows of 65,536",
         "task t \"T\"\ndim N = 65536\nin a[4,N] : f32 ~ normal(0,1)\nout c[4,N] : f32\n"
         "c[i,j] = sum(k <= j) a[i,k]\n"},
        {"softmax written in one line",
         "task t \"T\"\ndim N = 4096\nin a[64,N] : f32 ~ normal(0,1)\nout c[64,N] : f32\n"
         "c[i,j] = exp(a[i,j] - (max(k) a[i,k]))/(sum(k) exp(a[i,k] - (max(l) a[i,l])))\n"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        double s = seconds_of(&f, rows[k].text);
        printf("# %s in %.3f s\n", rows[k].what, s);
        CHECKF(s < 5, "%s: %g s", rows[k].what, s);
        fixture_end(&f);
    }
}

/* In the memory of other inputs' references, with and without ties. */
static void again_is_the_same(void) {
    static const char *const bodies[] = {
        "out y[M,N] : f32\ny[i,j] = x[i,j] / (sum(k) abs(x[i,k]))\n",
        "out y[M] : i32\ny[i] = argmax(k) x[i,k]\n",
    };
    for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
        struct fixture f, g;
        char text[256];
        snprintf(text, sizeof text,
                 "task t \"T\"\ndim M = 7, N = 300\n"
                 "in x[M,N] : bf16 ~ normal(0,1)\n%s",
                 bodies[k]);
        if (fixture_text(&f, text) && fixture_text(&g, text) &&
            fixture_data(&f, DATA_CONSTANT, 3) && fixture_data(&g, DATA_SPIKES, 4)) {
            const struct reference *r = f.refs, *s = g.refs;
            const double *memory = r->value;
            CHECK(reference_eval_again(f.in, (const void *const *)g.inputs, 2, &f.refs, &f.nrefs,
                                       &f.err));
            r = f.refs;
            CHECK(f.nrefs == g.nrefs && r->value == memory && r->tie_words == s->tie_words);
            CHECK(memcmp(r->value, s->value, s->count * sizeof *s->value) == 0);
            CHECK(memcmp(r->estimate, s->estimate, s->count * sizeof *s->estimate) == 0);
            CHECK(!s->ties == !r->ties);
            if (s->ties && r->ties)
                CHECK(memcmp(r->ties, s->ties, s->count * s->tie_words * 8) == 0);
        }
        fixture_end(&f);
        fixture_end(&g);
    }
}

static const struct tap_case cases[] = {
    {"values", values},
    {"functions agree with libm", functions_agree_with_libm},
    {"NaN, infinity and what is undefined", nan_and_infinity},
    {"NaN among the terms of sums that leave some out", nan_among_terms},
    {"estimates follow the rules", estimates_follow_the_rules},
    {"typed lets round", typed_lets_round},
    {"threads do not matter", threads_do_not_matter},
    {"again, in the same memory", again_is_the_same},
    {"an inout tensor is read as it was", inout_reads_the_old_content},
    {"estimates of reductions", estimates_of_reductions},
    {"flat functions of uncertain sums", flat_functions_of_uncertain_sums},
    {"factors below the format of the class", factors_below_the_format},
    {"inputs below it, beside a computed factor", inputs_below_the_format},
    {"names of elements", names_of_elements},
    {"fast enough", fast_enough},
};
TAP_CASES(cases)
