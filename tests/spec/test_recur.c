/* Lets that read their own earlier steps: which circles an axis orders, what the reference makes of
 * them, held against plain loops, and what errors become of. */
#include "fixture.h"
#include "spec/part.h"
#include "spec/recur.h"
#include "spec/trivial.h"

#include <math.h>
#include <string.h>

/* ---- which are accepted ---- */

#define HEAD                                                                                       \
    "task t \"T\"\ndim N = 5, M = 4\nin x[N,M] : f32 ~ uniform(0,1)\nin q[N] : i32 ~ "             \
    "randint(0,5)\nout y[N] : f32\n"

static const struct {
    const char *name, *text, *want; /* want NULL: accepted */
    size_t lets;                    /* of recurrences */
    bool backwards;
} circles[] = {
    {"a step back", "let h[i] = if(i == 0, 0, h[i-1]) + x[i,0]\ny[i] = h[i]\n", NULL, 1, false},
    {"by a guard of another form", "let h[i] = if(i >= 1, h[i-1], 0) + x[i,0]\ny[i] = h[i]\n", NULL,
     1, false},
    {"two steps back", "let h[i] = pad(h[i-2], 0) + x[i,0]\ny[i] = h[i]\n", NULL, 1, false},
    {"a number before the index", "let h[i] = pad(h[-1+i], 0) + x[i,0]\ny[i] = h[i]\n",
     "at no fixed number", 0, false},
    {"forward in the text, back in time",
     "let h[i] = if(i == N - 1, 0, h[i+1]) + x[i,0]\ny[i] = h[i]\n", NULL, 1, true},
    {"two lets", "let a[i] = x[i,0] + pad(b[i-1], 0)\nlet b[i] = 2*a[i]\ny[i] = b[i]\n", NULL, 2,
     false},
    {"three lets in any order of lines",
     "let c[i] = b[i]*0.5\nlet b[i] = a[i] + 1\nlet a[i] = x[i,0] + pad(c[i-1], 0)\ny[i] = c[i]\n",
     NULL, 3, false},
    {"all of the step before", "let h[i,j] = x[i,j] + sum(k < M) pad(h[i-1,k], 0)\ny[i] = h[i,0]\n",
     NULL, 1, false},
    {"a neighbour of the step before", "let h[i,j] = x[i,j] + pad(h[i-1,j-1], 0)\ny[i] = h[i,0]\n",
     NULL, 1, false},
    {"a place from data within the step before",
     "let h[i,j] = x[i,j] + pad(h[i-1,q[i] % M], 0)\ny[i] = h[i,0]\n", NULL, 1, false},
    {"its own place", "let h[i] = h[i] + x[i,0]\ny[i] = h[i]\n", "the let 'h' is defined by itself",
     0, false},
    {"a place from data", "let h[i] = if(i == 0, 0, h[q[i]])\ny[i] = h[i]\n",
     "at no fixed number of steps", 0, false},
    {"two axes", "let h[i,j] = x[i,j] + pad(h[i-1,j], 0) + pad(h[i,j-1], 0)\ny[i] = h[i,0]\n",
     "no single axis orders it", 0, false},
    {"both directions", "let h[i] = pad(h[i-1], 0) + pad(h[i+1], 0)\ny[i] = h[i]\n",
     "at earlier and at later steps", 0, false},
    {"any step before", "let h[i] = x[i,0] + sum(k < i) h[k]\ny[i] = h[i]\n",
     "at no fixed number of steps", 0, false},
    {"no index", "let h = h + 1\ny[i] = h\n", "the let 'h' is defined by itself", 0, false},
    {"within a step", "let a[i] = b[i] + pad(a[i-1], 0)\nlet b[i] = a[i]\ny[i] = a[i]\n",
     "is defined by itself", 0, false},
    {"an output", "y[i] = pad(y[i-1], 0)\n", "'y' is an output and cannot be read", 0, false},
    {"no first step", "let h[i] = h[i-1] + x[i,0]\ny[i] = h[i]\n", "the read can leave 'h'", 0,
     false},
    {"a first step that does not guard", "let h[i] = if(i == 1, 0, h[i-1]) + x[i,0]\ny[i] = h[i]\n",
     "the read can leave 'h'", 0, false},
};

static void which_circles(void) {
    for (size_t i = 0; i < sizeof circles / sizeof *circles; i++) {
        struct arena *a = arena_new((size_t)16 << 20);
        struct err err = {0};
        struct task *t;
        struct inst *in;
        size_t lets = 0;
        bool backwards = false;
        str text = arena_printf(a, "%s%s", HEAD, circles[i].text);
        bool ok = task_parse(S("t.task"), text, a, &t, &err) && task_bind(t, NULL, 0, a, &in, &err);
        for (size_t k = 0; ok && k < t->nstatements; k++) {
            lets += t->statements[k].recurs.number > 0;
            backwards |= t->statements[k].recurs.backwards;
        }
        CHECKF(ok == !circles[i].want, "%s: %s", circles[i].name, err.text);
        CHECKF(ok || strstr(err.text, circles[i].want), "%s: %s", circles[i].name, err.text);
        CHECKF(lets == circles[i].lets && backwards == circles[i].backwards, "%s: %zu lets",
               circles[i].name, lets);
        arena_free(a);
    }
}

/* ---- values, against loops ---- */

enum { B = 3, T = 11, H = 4 };

static double at(const struct fixture *f, const char *name, size_t i) {
    return ((const float *)f->inputs[tensor_find(f->task, str_view(name))])[i];
}

static bool start(struct fixture *f, const char *text, enum data_kind kind) {
    if (!fixture_text(f, text))
        return false;
    for (size_t i = 0; i < f->task->ntensors; i++)
        if (tensor_is_input(&f->task->tensors[i])) {
            f->inputs[i] = mem_alloc(f->in->tensors[i].bytes);
            data_fill(f->in, &f->scale, i, kind, 7, 0, f->in->tensors[i].count, f->inputs[i]);
        }
    return fixture_eval(f, 2);
}

static void check_values(const struct fixture *f, const double *want, size_t n) {
    size_t off = 0;
    for (size_t i = 0; i < n; i++)
        off += !(fabs(f->refs[0].value[i] - want[i]) <= 1e-12 * (1 + fabs(want[i])));
    CHECKF(f->refs[0].count == n && off == 0, "%zu of %zu values", off, n);
}

static void close_fixture(struct fixture *f) {
    fixture_forget(f);
    arena_free(f->a);
}

/* A let of the whole state, one of its own line, and one beside the axis. */
static void a_cell(void) {
    struct fixture f;
    double h[B][H] = {{0}}, c[B][H] = {{0}}, want[B * T * H];
    if (!start(&f,
               "task t \"T\"\ndim B = 3, T = 11, H = 4\nin x[B,T,H] : f32 ~ normal(0,1)\n"
               "in w[H,H] : f32 ~ normal(0,1)\nout y[B,T,H] : f32\n"
               "let g[b,t,j] = tanh(x[b,t,j] + sum(k) w[j,k]*pad(h[b,t-1,k], 0))\n"
               "let c[b,t,j] = 0.5*pad(c[b,t-1,j], 0) + g[b,t,H-1-j]\n"
               "let h[b,t,j] = g[b,t,j]*c[b,t,j]\ny[b,t,j] = h[b,t,j]\n",
               DATA_STATED))
        return;
    for (int b = 0; b < B; b++)
        for (int t = 0; t < T; t++) {
            double g[H];
            for (int j = 0; j < H; j++) {
                double sum = at(&f, "x", (size_t)((b * T + t) * H + j));
                for (int k = 0; k < H; k++)
                    sum += at(&f, "w", (size_t)(j * H + k)) * h[b][k];
                g[j] = tanh(sum);
            }
            for (int j = 0; j < H; j++) {
                c[b][j] = 0.5 * c[b][j] + g[H - 1 - j];
                h[b][j] = g[j] * c[b][j];
                want[(b * T + t) * H + j] = h[b][j];
            }
        }
    check_values(&f, want, B * T * H);
    close_fixture(&f);
}

/* Backwards, two steps, along the first dimension. */
static void backwards(void) {
    struct fixture f;
    double h[T + 2] = {0}, want[T];
    if (!start(&f,
               "task t \"T\"\ndim T = 11\nin x[T] : f32 ~ normal(0,1)\nout y[T] : f32\n"
               "let h[t] = x[t] + 0.7*pad(h[t+1], 0) - 0.2*pad(h[t+2], 0)\ny[t] = h[t]\n",
               DATA_STATED))
        return;
    for (int t = T - 1; t >= 0; t--)
        want[t] = h[t] = at(&f, "x", (size_t)t) + 0.7 * h[t + 1] - 0.2 * h[t + 2];
    check_values(&f, want, T);
    close_fixture(&f);
}

/* ---- parts ---- */

static void parts_of_it(void) {
    static const char text[] =
        "task t \"T\"\ndim B = 3, T = 11, H = 4\nin x[B,T,H] : f32 ~ normal(0,1)\n"
        "in w[H,H] : f32 ~ normal(0,1)\nout y[B,T,H] : f32\n"
        "let h[b,t,j] = tanh(x[b,t,j] + sum(k) w[j,k]*pad(h[b,t-1,k], 0))\n"
        "let s[b,t,j] = 0.9*pad(s[b,t-1,j], 0) + pad(s[b,t-1,j-1], 0) + h[b,t,j]\n"
        "y[b,t,j] = s[b,t,j]\n";
    struct fixture f;
    if (!start(&f, text, DATA_STATED))
        return;
    for (int64_t t = 0; t < T; t++)
        for (int64_t j = 0; j < H; j++) {
            struct part p = {.tensor = f.refs[0].tensor, .lo = {1, t, j}, .n = {1, 1, 1}};
            struct reference ref;
            bool ok = part_reference(f.in, &f.scale, DATA_STATED, 7, &p, 1, &ref, &f.err);
            size_t i = (size_t)((T + t) * H + j);
            CHECKF(ok && fabs(ref.value[0] - f.refs[0].value[i]) <= 1e-13 * fabs(ref.value[0]) &&
                       fabs(ref.estimate[0] - f.refs[0].estimate[i]) <= 0.1 * ref.estimate[0],
                   "y[1,%lld,%lld]: %g by %g, whole %g by %g %s", (long long)t, (long long)j,
                   ref.value[0], ref.estimate[0], f.refs[0].value[i], f.refs[0].estimate[i],
                   f.err.text);
            CHECK(part_cost(f.in, &p) > 0);
            part_release(&ref);
        }
    close_fixture(&f);
}

/* ---- errors ---- */

/* The same filter as a sum that forgets and as a step towards the input: what is off is forgotten
 * in both. Of a pair of states the errors are followed together. */
static void errors_are_forgotten(void) {
    static const struct {
        const char *name, *step;
    } rows[] = {
        {"forgets", "0.5*h[t-1] + 0.5*x[t]"},
        {"towards the input", "h[t-1] + 0.5*(x[t] - h[t-1])"},
        {"in two halves", "0.25*h[t-1] + 0.25*h[t-1] + 0.5*x[t]"},
        {"two states", "x[t] + 1.6*h[t-1] - 0.8*pad(h[t-2], 0)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        char text[512];
        double largest = 0, size = 0;
        snprintf(text, sizeof text,
                 "task t \"T\"\ndim T = 3000\nin x[T] : f32 ~ normal(0,1)\nout y[T] : f32\n"
                 "let h[t] = if(t == 0, x[0], %s)\ny[t] = h[t]\n",
                 rows[i].step);
        if (!start(&f, text, DATA_STATED))
            continue;
        for (size_t k = 0; k < f.refs[0].count; k++) {
            largest = fmax(largest, f.refs[0].estimate[k]);
            size = fmax(size, fabs(f.refs[0].value[k]));
        }
        CHECKF(largest > 0x1p-27 * size && largest < 0x1p-18 * size, "%s: %g of %g", rows[i].name,
               largest, size);
        close_fixture(&f);
    }
}

/* What doubles its errors is not judged after some steps; a task of it is refused. */
static void errors_that_grow(void) {
    struct fixture f;
    static const char text[] =
        "task t \"T\"\ndim N = 8, T = 80\nin x[N] : f32 ~ uniform(0.1,0.9)\nout y[T,N] : f32\n"
        "let h[t,n] = if(t == 0, x[n], 3.9*h[t-1,n]*(1 - h[t-1,n]))\ny[t,n] = h[t,n]\n";
    if (!start(&f, text, DATA_STATED))
        return;
    CHECK(f.refs[0].estimate[7] < 1e-6);
    CHECK(isinf(f.refs[0].estimate[79 * 8]));
    CHECK(!task_check_trivial(f.in, 1, &f.err) && strstr(f.err.text, "may be anything"));
    close_fixture(&f);
}

static const struct tap_case cases[] = {
    {"which circles an axis orders", which_circles},
    {"a cell of several lets", a_cell},
    {"backwards", backwards},
    {"parts of it", parts_of_it},
    {"errors are forgotten as the steps forget", errors_are_forgotten},
    {"errors that grow", errors_that_grow},
};

TAP_CASES(cases)
