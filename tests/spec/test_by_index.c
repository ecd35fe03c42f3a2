/* Reductions by index: their reference goes over the terms once. It is the same as that of every
 * result going through all terms, whatever the data; it has the values of plain C on skewed ones;
 * and it refuses results that leave terms out or have them twice. */
#include "fixture.h"

#include "spec/cost.h"
#include "spec/part.h"
#include "spec/pattern.h"
#include <math.h>
#include <string.h>
#include <time.h>

/* A statement, and the same mathematics with a condition that is none of an index's: `!(e != k)`
 * equates, but is not recognised. */
struct pair {
    const char *listed, *plain;
};
static const struct pair pairs[] = {
    {"y[b,k,d] = sum(t | e[b,t] == k) x[b,t,d]", "y[b,k,d] = sum(t | !(e[b,t] != k)) x[b,t,d]"},
    {"y[b,k,d] = sum(t | k == e[b,t] && x[b,t,d] > 0) x[b,t,d]*x[b,t,d]",
     "y[b,k,d] = sum(t | !(k != e[b,t]) && x[b,t,d] > 0) x[b,t,d]*x[b,t,d]"},
    {"y[b,k,d] = mean(t | (e[b,t] - 2)//2 == k) x[b,t,d]",
     "y[b,k,d] = mean(t | !((e[b,t] - 2)//2 != k)) x[b,t,d]"},
    {"y[b,k,d] = max(t | e[b,t] == k) x[b,t,d]", "y[b,k,d] = max(t | !(e[b,t] != k)) x[b,t,d]"},
    {"y[b,k,d] = prod(t | e[b,t] == k) x[b,t,d]", "y[b,k,d] = prod(t | !(e[b,t] != k)) x[b,t,d]"},
    {"y[b,k,d] = sum(s < 3, t | e[b,t] + s == k && f[t] == d) x[b,t,s]",
     "y[b,k,d] = sum(s < 3, t | !(e[b,t] + s != k) && !(f[t] != d)) x[b,t,s]"},
    {"y[b,k,d] = sum(t | e[b,t] == k && f[t] == d) 1",
     "y[b,k,d] = sum(t | !(e[b,t] != k) && !(f[t] != d)) 1"},
    {"y[b,k,d] = sum(t | clamp(floor(x[b,t,d]*3.7) + 4, 0, 7) == k) x[b,t,d]",
     "y[b,k,d] = sum(t | !(clamp(floor(x[b,t,d]*3.7) + 4, 0, 7) != k)) x[b,t,d]"},
    /* a number of which the class cannot tell whether it is one or the next */
    {"let i[b,t] : i32 = floor(x[b,t,0]*1.1)\ny[b,k,d] = sum(t | i[b,t] == k) x[b,t,d]",
     "let i[b,t] : i32 = floor(x[b,t,0]*1.1)\ny[b,k,d] = sum(t | !(i[b,t] != k)) x[b,t,d]"},
};

static bool bind_body(struct fixture *f, const char *body) {
    char text[1024];
    snprintf(text, sizeof text,
             "task t \"T\"\ndim B = 2, T = 300, K = 9, D = 5\nin e[B,T] : i32 ~ randint(0, 12)\n"
             "in f[T] : i32 ~ randint(0, D)\nin x[B,T,D] : f32 ~ normal(0, 1)\n"
             "out y[B,K,D] : f32\n%s\n",
             body);
    return fixture_text(f, text);
}

static bool is_recognised(const struct fixture *f) {
    struct by_index by;
    return pattern_is_by_index(f->task->statements[f->task->nstatements - 1].body, &by);
}

static bool near(double a, double b) {
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-13 * fabs(b);
}

static void check_pair(const struct pair *p, enum data_kind kind) {
    struct fixture a, b;
    if (bind_body(&a, p->listed) && bind_body(&b, p->plain)) {
        CHECKF(is_recognised(&a) && !is_recognised(&b), "%s", p->listed);
        bool both = fixture_data(&a, kind, 5) && fixture_data(&b, kind, 5);
        for (size_t i = 0; both && i < a.refs[0].count; i++) {
            struct reference *x = &a.refs[0], *y = &b.refs[0];
            CHECKF(near(x->value[i], y->value[i]) && near(x->estimate[i], y->estimate[i]),
                   "%s, kind %d, element %zu: %g +- %g, not %g +- %g", p->listed, (int)kind, i,
                   x->value[i], x->estimate[i], y->value[i], y->estimate[i]);
        }
    }
    fixture_end(&a);
    fixture_end(&b);
}

static void as_with_all_terms(void) {
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int kind = 0; kind < DATA_COUNT; kind++)
            check_pair(&pairs[i], (enum data_kind)kind);
}

/* ---- values and verdicts, of data that are skewed ---- */

enum { T = 5000, K = 40 };

#define HEAD                                                                                       \
    "task t \"T\"\ndim T = 5000, K = 40\nin e[T] : i32 ~ randint(-5, 45)\n"                        \
    "in x[T] : f32 ~ normal(0, 1)\nout y[K] : f32\n"

/* How the numbers of the terms are spread. */
static int number_of(int spread, int t) {
    switch (spread) {
    case 0:
        return 7; /* all of one result */
    case 1:
        return t % 50 - 5; /* some outside */
    case 2:
        return t < T / 2 ? -1 : 39; /* half of them nowhere, the others at the end */
    case 3:
        return 44; /* nowhere */
    default:
        return t * K / T; /* ascending */
    }
}
enum { SPREADS = 5 };

static void fill(struct fixture *f, int spread) {
    static double e[T], x[T];
    for (int t = 0; t < T; t++) {
        e[t] = number_of(spread, t);
        x[t] = 1.0 + (t * 37 % 101) / 128.0;
    }
    fixture_set(f, "e", e, T);
    fixture_set(f, "x", x, T);
}

static void add_up(const struct fixture *f, double *out) {
    const int *e = f->inputs[tensor_find(f->task, S("e"))];
    const float *x = f->inputs[tensor_find(f->task, S("x"))];
    memset(out, 0, K * sizeof *out);
    for (int t = 0; t < T; t++)
        if (e[t] >= 0 && e[t] < K)
            out[e[t]] += (double)x[t];
}

static bool passes(struct fixture *f, const double *v) {
    float got[K];
    struct comparison c;
    for (int k = 0; k < K; k++)
        got[k] = (float)v[k];
    reference_compare(f->in, &f->refs[0], got, 1, &c);
    return c.pass;
}

static void check_spread(const char *body, int spread) {
    struct fixture f;
    double want[K];
    if (fixture_text(&f, body)) {
        fill(&f, spread);
        if (fixture_eval(&f, 2)) {
            add_up(&f, want);
            for (int k = 0; k < K; k++)
                CHECKF(fabs(f.refs[0].value[k] - want[k]) <= 1e-12 * fabs(want[k]),
                       "spread %d, %d: %g, not %g", spread, k, f.refs[0].value[k], want[k]);
            CHECK(passes(&f, want));
            int last = spread == 0 ? 7 : 39;
            double kept = want[last];
            want[last] = kept != 0 ? 0 : 1; /* left out, or made up */
            CHECK(!passes(&f, want));
            want[last] = kept != 0 ? kept + 1.25 : 1; /* a term twice */
            CHECK(!passes(&f, want));
        }
    }
    fixture_end(&f);
}

static void values_of_skewed_data(void) {
    for (int spread = 0; spread < SPREADS; spread++) {
        check_spread(HEAD "y[k] = sum(t | e[t] == k) x[t]\n", spread);
        check_spread(HEAD "y[k] = sum(t) if(e[t] == k, x[t], 0)\n", spread);
    }
}

/* ---- parts of an output, what is no sum by index, and time ---- */

static void parts_are_the_whole(void) {
    struct fixture f;
    if (bind_body(&f, pairs[0].listed) && fixture_data(&f, DATA_SIGNED, 3)) {
        struct part p = {.tensor = f.refs[0].tensor, .lo = {1, 2, 1}, .n = {1, 4, 3}};
        struct reference part;
        bool ok = part_reference(f.in, &f.scale, DATA_SIGNED, 3, &p, 2, &part, &f.err);
        CHECKF(ok, "%s", f.err.text);
        for (size_t i = 0; ok && i < part.count; i++) {
            size_t at = ((1 * 9) + 2 + i / 3) * 5 + 1 + i % 3;
            CHECK(part.value[i] == f.refs[0].value[at] &&
                  part.estimate[i] == f.refs[0].estimate[at]);
        }
        if (ok)
            part_release(&part);
    }
    fixture_end(&f);
}

static void others_are_not(void) {
    static const char *const bodies[] = {
        "y[b,k,d] = sum(t | e[b,t] < k) x[b,t,d]",
        "y[b,k,d] = sum(t | e[b,t] == k || d == 0) x[b,t,d]",
        "y[b,k,d] = sum(t | t//4 == k) x[b,t,d]",
        "y[b,k,d] = sum(t | x[b,t,d]*2 == k) x[b,t,d]",
        "y[b,k,d] = sum(t | e[b,t]*k == k) x[b,t,d]",
        "y[b,k,d] = sum(t) if(e[b,t] == k, x[b,t,d], 1)",
        "y[b,k,d] = max(t) if(e[b,t] == k, x[b,t,d], 0)",
        "y[b,k,d] = sum(t < k | e[b,t] == k) x[b,t,d]",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct fixture f;
        if (bind_body(&f, bodies[i]))
            CHECKF(!is_recognised(&f), "%s", bodies[i]);
        fixture_end(&f);
    }
}

/* 2^18 terms of 2^14 results: four thousand million pairs, which would take half a minute. */
static void many_results(void) {
    struct fixture f;
    clock_t start = clock();
    if (fixture_text(&f, "task t \"T\"\ndim T = 262144, K = 16384\nin e[T] : i32 ~ randint(0, K)\n"
                         "in x[T] : f32 ~ normal(0, 1)\nout y[K] : f32\n"
                         "y[k] = sum(t | e[t] == k) x[t]\n")) {
        struct cost c;
        cost_of(f.in, &c);
        CHECK(c.flops <= 4 * 262144.0);
        CHECK(fixture_data(&f, DATA_STATED, 1));
        double took = (double)(clock() - start) / CLOCKS_PER_SEC;
        CHECKF(took < 8, "%g seconds", took);
    }
    fixture_end(&f);
}

static const struct tap_case cases[] = {
    {"the same as through all terms", as_with_all_terms},
    {"values of skewed data", values_of_skewed_data},
    {"parts", parts_are_the_whole},
    {"what is none", others_are_not},
    {"many results", many_results},
};
TAP_CASES(cases)
