/* Recurrences, written as sums of products: their reference goes step by step. It has the values of
 * the definition, allows what honest kernels do, and refuses what is wrong. */
#include "fixture.h"

#include "spec/cost.h"
#include "spec/part.h"
#include <math.h>
#include <string.h>

enum { B = 3, N = 200 };

struct form {
    const char *body;
    bool exclusive, with_own;
};
static const struct form forms[] = {
    {"sum(j <= i) u[b,j] * prod(j < k <= i) a[b,k]", false, false},
    {"sum(j <= i) (prod(j < k <= i) a[b,k]) * u[b,j]", false, false},
    {"sum(j < i) u[b,j] * prod(j < k < i) a[b,k]", true, false},
    {"sum(j <= i) u[b,j] * prod(j <= k <= i) a[b,k]", false, true},
};

static bool bind_form(struct fixture *f, const char *body, const char *range) {
    char text[1024];
    snprintf(text, sizeof text,
             "task t \"T\"\ndim B = %d, N = %d\nin u[B,N] : f32 ~ normal(0,1)\n"
             "in a[B,N] : f32 ~ %s\nout y[B,N] : f32\ny[b,i] = %s\n",
             B, N, range, body);
    return fixture_text(f, text);
}

/* By the definition, each result from its own terms. */
static double defined(const struct form *m, const float *u, const float *a, int i) {
    int end = m->exclusive ? i : i + 1;
    double sum = 0;
    for (int j = 0; j < end; j++) {
        double product = u[j];
        for (int k = j + !m->with_own; k < end; k++)
            product *= a[k];
        sum += product;
    }
    return sum;
}

/* As a kernel does it: stretches by themselves in fp32, then one after the other. */
static float by_stretches(const struct form *m, const float *u, const float *a, int i, int length) {
    int end = m->exclusive ? i : i + 1;
    float h = 0;
    for (int from = 0; from < end; from += length) {
        float decay = 1, own = 0;
        for (int t = from; t < end && t < from + length; t++) {
            own = m->with_own ? a[t] * (own + u[t]) : a[t] * own + u[t];
            decay *= a[t];
        }
        h = decay * h + own;
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
        got[B * N - 1] += 1e-3f * (1 + fabsf(got[B * N - 1]));
        CHECKF(!passes(&f, got), "%s: a result that is off by a thousandth", m->body);
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
                         "in a[N] : f32 ~ uniform(0,1)\nout y[N] : f32\nout p[N] : i32\n"
                         "y[i] = sum(j <= i) u[j] * prod(j < k <= i) a[k]\n"
                         "p[i] = argmax(j <= i) u[j]\n") &&
        fixture_data(&f, DATA_STATED, 1)) {
        const float *u = data_of(&f, "u"), *a = data_of(&f, "a");
        double h = 0;
        int place = 0;
        for (int i = 0; i < 100000; i++) {
            h = a[i] * h + u[i];
            place = u[i] > u[place] ? i : place;
            CHECK(f.refs[0].value[i] == h && f.refs[1].value[i] == place);
        }
    }
    fixture_end(&f);
}

static const struct tap_case cases[] = {
    {"values and what is allowed", values},
    {"parts", parts},
    {"NaN and infinities", infinities},
    {"linear work", linear},
};
TAP_CASES(cases)
