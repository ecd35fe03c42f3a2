/* Recurrences, written as sums of products: their reference goes step by step. It has the values of
 * the definition, allows what honest kernels do, and refuses what is wrong. */
#include "fixture.h"

#include "spec/cost.h"
#include "spec/part.h"
#include <math.h>
#include <string.h>

enum { B = 3, N = 200 };

enum decay { EACH, SAME, EXPONENTIAL, SAME_EXPONENTIAL };
struct form {
    const char *body;
    bool exclusive, with_own, backwards;
    enum decay decay; /* by a[b,k], a[b,0], exp(-a[b,k]), exp(-a[b,0]) */
    double scale;
    bool gain; /* u[b,j]*exp(u[b,j]/8) in place of u[b,j] */
};
static const struct form forms[] = {
    {"sum(j <= i) u[b,j] * prod(j < k <= i) a[b,k]", false, false, false, EACH, 1},
    {"sum(j <= i) (prod(j < k <= i) a[b,k]) * u[b,j]", false, false, false, EACH, 1},
    {"sum(j < i) u[b,j] * prod(j < k < i) a[b,k]", true, false, false, EACH, 1},
    {"sum(j <= i) u[b,j] * prod(j <= k <= i) a[b,k]", false, true, false, EACH, 1},
    {"sum(j <= i) 0.5 * (prod(j < k <= i) a[b,k]) * u[b,j]", false, false, false, EACH, 0.5},
    {"sum(j <= i) -u[b,j] * (prod(j < k <= i) a[b,k]) / 4", false, false, false, EACH, -0.25},
    {"sum(i <= j < N) u[b,j] * prod(i <= k < j) a[b,k]", false, false, true, EACH, 1},
    {"sum(i < j < N) u[b,j] * prod(i < k < j) a[b,k]", true, false, true, EACH, 1},
    {"sum(i <= j < N) u[b,j] * prod(i <= k <= j) a[b,k]", false, true, true, EACH, 1},
    {"sum(j <= i) u[b,j] * exp(-(sum(j < k <= i) a[b,k]))", false, false, false, EXPONENTIAL, 1},
    {"sum(j <= i) u[b,j] * exp(sum(j < k <= i) (-a[b,k]))", false, false, false, EXPONENTIAL, 1},
    {"sum(j <= i) u[b,j] * pow(a[b,0], i - j)", false, false, false, SAME, 1},
    {"sum(j < i) u[b,j] * pow(a[b,0], i - j - 1)", true, false, false, SAME, 1},
    {"sum(j < i) 2 * pow(a[b,0], i - j) * u[b,j]", true, true, false, SAME, 2},
    {"sum(i <= j < N) u[b,j] * pow(a[b,0], j - i)", false, false, true, SAME, 1},
    {"sum(j <= i) u[b,j] * exp(-a[b,0]*(i - j))", false, false, false, SAME_EXPONENTIAL, 1},
    {"sum(j <= i) u[b,j] * exp((j - i)*a[b,0])", false, false, false, SAME_EXPONENTIAL, 1},
    {"sum(j <= i) u[b,j] * exp(-(i - j + 1)*a[b,0])", false, true, false, SAME_EXPONENTIAL, 1},
    {"sum(j <= i) exp(u[b,j]/8 - a[b,0]*(i - j)) * u[b,j]", false, false, false, SAME_EXPONENTIAL,
     1, true},
    {"sum(j <= i) u[b,j] * exp((sum(j < k <= i) (-a[b,k])) + u[b,j]/8)", false, false, false,
     EXPONENTIAL, 1, true},
};

static bool bind_form(struct fixture *f, const char *body, const char *range) {
    char text[1024];
    snprintf(text, sizeof text,
             "task t \"T\"\ndim B = %d, N = %d\nin u[B,N] : f32 ~ normal(0,1)\n"
             "in a[B,N] : f32 ~ %s\nout y[B,N] : f32\ny[b,i] = %s\n",
             B, N, range, body);
    return fixture_text(f, text);
}

static double decay_of(const struct form *m, const float *a, int k) {
    double v = m->decay == SAME || m->decay == SAME_EXPONENTIAL ? a[0] : a[k];
    return m->decay == EXPONENTIAL || m->decay == SAME_EXPONENTIAL ? exp(-v) : v;
}

/* The first place, from the result's on against the steps, and how many terms there are. */
static int first_of(const struct form *m, int i, int *terms) {
    *terms = (m->backwards ? N - i : i + 1) - m->exclusive;
    return m->backwards ? i + m->exclusive : i - m->exclusive;
}

/* By the definition, each result from its own terms. */
static double defined(const struct form *m, const float *u, const float *a, int i) {
    int terms, from = first_of(m, i, &terms), way = m->backwards ? 1 : -1;
    double sum = 0, product = 1;
    for (int n = 0; n < terms; n++) {
        int j = from + way * n;
        double own = product * decay_of(m, a, j);
        double term = m->scale * u[j] * (m->gain ? exp(u[j] / 8) : 1);
        sum += term * (m->with_own ? own : product);
        product = own;
    }
    return sum;
}

/* As a kernel does it: stretches by themselves in fp32, then one after the other. */
static float by_stretches(const struct form *m, const float *u, const float *a, int i, int length) {
    int terms, way = m->backwards ? -1 : 1, start = m->backwards ? N - 1 : 0;
    first_of(m, i, &terms);
    float h = 0;
    for (int from = 0; from < terms; from += length) {
        double decay = 1;
        float own = 0;
        for (int t = from; t < terms && t < from + length; t++) {
            int j = start + way * t;
            double by = decay_of(m, a, j);
            float term = (float)m->scale * u[j] * (m->gain ? expf(u[j] / 8) : 1);
            own = m->with_own ? (float)(by * (own + term)) : (float)(by * own + term);
            decay *= by;
        }
        h = (float)(decay * h + own);
    }
    return h;
}

static const float *data_of(const struct fixture *f, const char *name) {
    return f->inputs[tensor_find(f->task, str_view(name))];
}

static bool passes(struct fixture *f, const float *got) {
    struct comparison c;
    reference_compare(f->in, &f->refs[0], got, 1, &c);
    return c.pass;
}

static void check_form(const struct form *m, const char *range, enum data_kind kind) {
    struct fixture f;
    static float got[B * N];
    if (bind_form(&f, m->body, range) && fixture_data(&f, kind, 3)) {
        const float *u = data_of(&f, "u"), *a = data_of(&f, "a");
        for (int e = 0; e < B * N; e++) {
            double want = defined(m, u + e / N * N, a + e / N * N, e % N);
            double off = fabs(f.refs[0].value[e] - want);
            CHECKF(off <= 1e-12 * (1 + fabs(want)), "%s: element %d is %g, not %g", m->body, e,
                   f.refs[0].value[e], want);
        }
        for (int length = 1; length <= 64; length *= 8) {
            for (int e = 0; e < B * N; e++)
                got[e] = by_stretches(m, u + e / N * N, a + e / N * N, e % N, length);
            CHECKF(passes(&f, got), "%s: stretches of %d", m->body, length);
        }
        int last = m->backwards ? 0 : B * N - 1;
        got[last] += 1e-3f * (1 + fabsf(got[last]));
        bool judged = fabs(f.refs[0].value[last]) < 1e30; /* beyond fp32 all is allowed */
        CHECKF(!judged || !passes(&f, got), "%s: a result that is off by a thousandth", m->body);
    }
    fixture_end(&f);
}

static void values(void) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        check_form(&forms[i], "uniform(0,1)", DATA_STATED);
        check_form(&forms[i], "uniform(0.9,1.01)", DATA_SIGNED);
    }
}

/* A part has the values of the whole. */
static void parts(void) {
    struct fixture f;
    struct reference part;
    if (bind_form(&f, forms[0].body, "uniform(0.5,1)") && fixture_data(&f, DATA_SIGNED, 9)) {
        struct part p = {.tensor = f.refs[0].tensor, .lo = {1, 90}, .n = {2, 40}};
        bool ok = part_reference(f.in, &f.scale, DATA_SIGNED, 9, &p, 1, &part, &f.err);
        CHECKF(ok, "%s", f.err.text);
        for (int e = 0; ok && e < 80; e++) {
            int whole = (1 + e / 40) * N + 90 + e % 40;
            CHECK(part.value[e] == f.refs[0].value[whole] &&
                  part.estimate[e] == f.refs[0].estimate[whole]);
        }
        part_release(&part);
    }
    fixture_end(&f);
}

/* A NaN comes out of every later result; an infinity may be NaN, as where stretches are put
 * together. */
static void infinities(void) {
    struct fixture f;
    static float got[B * N];
    if (bind_form(&f, forms[0].body, "uniform(0.5,1)") && fixture_data(&f, DATA_STATED, 9)) {
        float *u = (float *)data_of(&f, "u"), *a = (float *)data_of(&f, "a");
        u[5] = INFINITY;
        u[N + 7] = NAN;
        a[2 * N + 9] = 0;
        CHECK(fixture_eval(&f, 1));
        for (int e = 0; e < B * N; e++)
            got[e] = by_stretches(&forms[0], u + e / N * N, a + e / N * N, e % N, 16);
        CHECK(passes(&f, got));
        got[5] = NAN;
        CHECK(passes(&f, got));
        got[5] = 1;
        CHECK(!passes(&f, got));
        got[5] = INFINITY;
        got[N + 9] = 0;
        CHECK(!passes(&f, got));
    }
    fixture_end(&f);
}

/* The work of a recurrence, and of places so far, is one step a result, not one a term. */
static void linear(void) {
    struct fixture f;
    struct cost c;
    if (bind_form(&f, forms[0].body, "uniform(0,1)")) {
        cost_of(f.in, &c);
        CHECK(c.flops == 2 * B * N && c.flops_contraction == 0);
    }
    fixture_end(&f);
    if (bind_form(&f, "argmax(j <= i) u[b,j]", "uniform(0,1)")) {
        cost_of(f.in, &c);
        CHECK(c.flops == B * N);
    }
    fixture_end(&f);
    /* As written this would take 10^15 steps. */
    if (fixture_text(&f, "task t \"T\"\ndim N = 100000\nin u[N] : f32 ~ normal(0,1)\n"
                         "in a[N] : f32 ~ uniform(0,1)\nin v[N] : i32 ~ randint(0,50)\n"
                         "out y[N] : f32\nout p[N] : i32\nout q[N] : i32\n"
                         "y[i] = sum(j <= i) u[j] * prod(j < k <= i) a[k]\n"
                         "p[i] = argmax(j <= i) u[j]\n"
                         "q[i] = argmin(i <= j < N) v[j]\n") &&
        fixture_data(&f, DATA_STATED, 1)) {
        const float *u = data_of(&f, "u"), *a = data_of(&f, "a");
        double h = 0;
        int place = 0;
        for (int i = 0; i < 100000; i++) {
            h = a[i] * h + u[i];
            place = u[i] > u[place] ? i : place;
            CHECK(f.refs[0].value[i] == h && f.refs[1].value[i] == place);
        }
        const int32_t *v = (const int32_t *)data_of(&f, "v");
        place = 100000 - 1;
        for (int i = 100000 - 1; i >= 0; i--) {
            place = v[i] <= v[place] ? i : place;
            CHECK(f.refs[2].value[i] == place);
        }
    }
    fixture_end(&f);
}

/* Running sums of exponentials, each result of its own terms, and as a kernel does it. */
static void check_exponentials(const char *body, bool backwards, enum data_kind kind) {
    struct fixture f;
    static float got[B * N];
    if (bind_form(&f, body, "normal(0,6)") && fixture_data(&f, kind, 5)) {
        const float *u = data_of(&f, "u"), *a = data_of(&f, "a");
        for (int e = 0; e < B * N; e++) {
            int i = e % N, row = e - i, n = backwards ? N - i : i + 1;
            double want = 0, most = -INFINITY;
            float largest = -INFINITY, sum = 0;
            for (int k = 0; k < n; k++) {
                int j = row + (backwards ? N - 1 - k : k);
                float top = fmaxf(largest, a[j]);
                sum = sum * expf(largest - top) + u[j] * expf(a[j] - top);
                largest = top;
                want += u[j] * exp((double)a[j] - a[e]);
                most = fmax(most, fabs(u[j]) * exp((double)a[j] - a[e]));
            }
            got[e] = sum * expf(largest - a[e]);
            bool judged = most < 1e36;
            CHECKF(!judged || fabs(f.refs[0].value[e] - want) <= 1e-12 * (most + fabs(want)),
                   "%s: element %d is %g, not %g", body, e, f.refs[0].value[e], want);
        }
        CHECKF(passes(&f, got), "%s", body);
        got[5] += 1e-3f * (1 + fabsf(got[5]));
        CHECKF(!passes(&f, got), "%s: a result that is off by a thousandth", body);
    }
    fixture_end(&f);
}

static void exponentials(void) {
    check_exponentials("sum(j <= i) u[b,j] * exp(a[b,j] - a[b,i])", false, DATA_STATED);
    check_exponentials("sum(j <= i) u[b,j] * exp(a[b,j] - a[b,i])", false, DATA_SORTED);
    check_exponentials("sum(i <= j < N) exp(-a[b,i] + a[b,j]) * u[b,j]", true, DATA_SIGNED);
}

/* NaN comes out where it is among the terms; an exponent of -inf is no term, one of +inf decides
 * nothing. */
static void infinite_exponents(void) {
    struct fixture f;
    static float got[B * N];
    if (bind_form(&f, "sum(j <= i) u[b,j] * exp(a[b,j] - u[b,i])", "normal(0,1)") &&
        fixture_data(&f, DATA_STATED, 5)) {
        float *a = (float *)data_of(&f, "a");
        const float *u = data_of(&f, "u");
        for (int j = 0; j < 9; j++)
            a[j] = -INFINITY;
        a[N + 7] = NAN;
        a[2 * N + 9] = INFINITY;
        CHECK(fixture_eval(&f, 1));
        for (int e = 0; e < B * N; e++) {
            double sum = 0;
            for (int j = e / N * N; j <= e; j++)
                sum += u[j] * exp((double)a[j] - u[e]);
            got[e] = (float)sum;
        }
        CHECK(got[3] == 0 && isnan(got[N + 9]) && passes(&f, got));
        got[2 * N + 12] = 1;
        CHECK(passes(&f, got));
        got[3] = 1;
        CHECK(!passes(&f, got));
        got[3] = 0;
        got[N + 9] = 0;
        CHECK(!passes(&f, got));
    }
    fixture_end(&f);
}

/* Segments, each result of its own terms. */
static void check_segments(const char *way, const char *body, const char *op, double empty) {
    struct fixture f;
    static float got[B * N];
    char text[1024];
    bool backwards = strstr(way, "min") != NULL, exclusive = strstr(body, "k < i") != NULL;
    snprintf(text, sizeof text,
             "task t \"T\"\ndim B = %d, N = %d\nin u[B,N] : f32 ~ normal(0,1)\n"
             "in c[B,N] : i32 ~ randint(0,9)\nout y[B,N] : f32\n"
             "let s[b,i < N] : i32 = %s\ny[b,i] = %s(%s) u[b,k]\n",
             B, N, way, op, body);
    if (fixture_text(&f, text) && fixture_data(&f, DATA_STATED, 5)) {
        const float *u = data_of(&f, "u");
        const int32_t *begins = (const int32_t *)data_of(&f, "c");
        for (int e = 0; e < B * N; e++) {
            double want = empty;
            int i = e % N, to = backwards ? N : -1, from = i;
            /* A segment ends with the element at which one begins. */
            bool more = !(exclusive && begins[e] == 0);
            for (from = i; from != to && more; from += backwards ? 1 : -1) {
                int k = e - i + from;
                if (from != i || !exclusive)
                    want = *op == 's' ? want + u[k] : fmax(want, u[k]);
                more = begins[k] != 0;
            }
            double off = fabs(f.refs[0].value[e] - want);
            CHECKF(f.refs[0].value[e] == want || off <= 1e-12 * (1 + fabs(want)),
                   "%s(%s): element %d is %g, not %g", op, body, e, f.refs[0].value[e], want);
            got[e] = (float)want;
        }
        CHECK(passes(&f, got));
        got[7] += 0.01f;
        CHECK(!passes(&f, got));
    }
    fixture_end(&f);
}

static void segments(void) {
    const char *start = "max(k <= i) if(c[b,k] == 0, k, 0)";
    const char *stop = "min(i <= k < N) if(c[b,k] == 0, k, N - 1)";
    check_segments(start, "k <= i | k >= s[b,i]", "sum", 0);
    check_segments(start, "k <= i | s[b,i] <= k", "max", -INFINITY);
    check_segments(start, "k < i | k >= s[b,i]", "sum", 0);
    check_segments(stop, "i <= k < N | k <= s[b,i]", "sum", 0);
}

/* One step a result, and of a start that is an input as many as there are terms. */
static void linear_segments(void) {
    const char *starts[2] = {"let s[b,i < N] : i32 = max(k <= i) if(c[b,k] == 0, k, 0)",
                             "let s[b,i < N] : i32 = c[b,i]"};
    for (int known = 1; known >= 0; known--) {
        struct fixture f;
        struct cost c;
        char text[1024];
        snprintf(text, sizeof text,
                 "task t \"T\"\ndim B = %d, N = %d\nin u[B,N] : f32 ~ normal(0,1)\n"
                 "in c[B,N] : i32 ~ randint(0,9)\nout y[B,N] : f32\n"
                 "%s\ny[b,i] = sum(k <= i | k >= s[b,i]) u[b,k]\n",
                 B, N, starts[!known]);
        if (fixture_text(&f, text)) {
            cost_of(f.in, &c);
            CHECK(known ? c.flops <= 6 * B * N : c.flops >= B * N * N / 2);
        }
        fixture_end(&f);
    }
}

static const struct tap_case cases[] = {
    {"values and what is allowed", values},
    {"parts", parts},
    {"NaN and infinities", infinities},
    {"linear work", linear},
    {"exponentials", exponentials},
    {"segments", segments},
    {"linear work of segments", linear_segments},
    {"exponents that are infinite or NaN", infinite_exponents},
};
TAP_CASES(cases)
