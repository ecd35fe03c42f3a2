/* Numbers for dimensions: sizes, settings, and the proof that reads stay inside. */
#include "fixture.h"

#define TASK(rest) "task t \"T\"\ndim N = 8, M = 6\nin x[N,M] : f32 ~ normal(0,1)\n" rest "\n"

static bool bind_text(const char *text, const struct binding *set, size_t n, struct err *err) {
    struct arena *a = arena_new((size_t)16 << 20);
    struct task *t;
    struct inst *in;
    bool ok = task_parse(S("t.task"), str_view(text), a, &t, err);
    CHECKF(ok, "%s", err->text);
    ok = ok && task_bind(t, set, n, a, &in, err);
    arena_free(a);
    return ok;
}

static void bounds_are_proved(void) {
    static const struct {
        const char *text, *expected; /* NULL: fine */
    } rows[] = {
        {TASK("out y[N] : f32\ny[i] = x[N-1-i, M-1]"), NULL},
        {TASK("out y[N] : f32\ny[i] = x[i, i//2]"), NULL},
        {TASK("out y[N] : f32\ny[i] = x[i, i%6]"), NULL},
        {TASK("out y[N] : f32\ny[i] = x[i, (i+1)%M]"), NULL},
        {TASK("out y[N,M//2] : f32\ny[i,j] = x[i,2*j] + x[i,2*j+1]"), NULL},
        {TASK("out y[N] : f32\ny[i] = x[(i - 3) % N, 0]"), NULL},
        {TASK("out y[N] : f32\ny[i] = x[maximum(i-1,0), minimum(i,M-1)]"), NULL},
        {TASK("out y[N] : f32\ny[i] = x[clamp(i*2,0,N-1), abs(i-4)]"), NULL},
        {TASK("out y[N] : f32\ny[i] = if(i > 0, x[i-1,0], 0)"), NULL},
        {TASK("out y[N] : f32\ny[i] = if(i + 1 < N, x[i+1,0], 0)"), NULL},
        {TASK("out y[N] : f32\ny[i] = if(i == 0, 0, x[i-1,0])"), NULL},
        {TASK("out y[N] : f32\ny[i] = if(!(i >= M) && x[0,0] > 0, x[0,i], 0)"), NULL},
        {TASK("out y[N] : f32\ny[i] = if(i < 1 || N-1 <= i, 0, x[i-1,0] + x[i+1,0])"), NULL},
        {TASK("out y[N] : f32\ny[i] = if(N < 3, x[99,0], 0)"), NULL},
        {TASK("out y[N] : f32\ny[i] = if(N < 9, x[99,0], 0)"),
         "t.task:5:20: the read can leave 'x'"},
        {TASK("out y[N] : f32\ny[i] = x[i+1,0]"),
         "t.task:5:10: the read can leave 'x': this index goes from 1 to 8, the dimension has 8 "
         "elements (with N=8 M=6)"},
        {TASK("out y[N] : f32\ny[i] = x[i-1,0]"), "t.task:5:10: the read can leave 'x'"},
        {TASK("out y[N] : f32\ny[i] = x[0,i]"), "t.task:5:12: the read can leave 'x'"},
        {TASK("out y[N] : f32\ny[i] = x[i*i,0]"), "t.task:5:10: the read can leave 'x'"},
        {TASK("out y[N] : f32\ny[i] = if(i > 0, 0, x[i-1,0])"), "t.task:5:23: the read can"},
        {TASK("out y[N] : f32\ny[i] = if(i >= 0, x[i-1,0], 0)"), "t.task:5:21: the read can"},
        {TASK("out y[N] : f32\ny[i] = x[i // (i-3), 0]"),
         "t.task:5:10: an integer division by zero"},
        {TASK("out y[N] : f32\ny[i] = 3 % i"), "t.task:5:8: an integer division by zero"},
        {TASK("out y[N] : f32\ny[i] = x[i*9223372036854775807, 0]"),
         "t.task:5:10: this does not fit"},
        {TASK("out y[N] : f32\nlet d[i] = x[i+1,0] - x[i,0]\ny[i] = d[i]"),
         "t.task:5:14: the read can leave 'x'"},
        {TASK("out y[N-1] : f32\nlet d[i < N-1] = x[i+1,0] - x[i,0]\ny[i] = d[i]"), NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        bool ok = bind_text(rows[i].text, NULL, 0, &err);
        CHECKF(ok == !rows[i].expected, "row %zu: %s", i, err.text);
        if (rows[i].expected)
            CHECKF(strncmp(err.text, rows[i].expected, strlen(rows[i].expected)) == 0,
                   "row %zu: %s", i, err.text);
    }
}

#define MORE(rest)                                                                                 \
    TASK("in t[N] : i32 ~ randint(0,6)\nin u[N] : i64 ~ randint(-1,6)\nin g[N] : u8 ~ "            \
         "randint(0,2)\nin h[256] : f32 ~ ones\nout y[N] : f32\n" rest)

/* Reductions, padding and places from data. The line of `rest` is 9. */
static void bounds_of_reductions_are_proved(void) {
    static const struct {
        const char *text, *expected; /* NULL: fine */
    } rows[] = {
        {MORE("y[i] = sum(k) x[i,k]"), NULL},
        {MORE("y[i] = sum(k < M) x[i,k]"), NULL},
        {MORE("y[i] = sum(k <= M) x[i,k]"),
         "t.task:9:24: the read can leave 'x': this index goes from 0 to 6, the dimension has 6"},
        {MORE("y[i] = sum(k <= i) x[k,0]"), NULL},
        {MORE("y[i] = sum(k <= i + 1) x[k,0]"), "t.task:9:26: the read can leave 'x'"},
        {MORE("y[i] = sum(i <= k < N) x[k,0]"), NULL},
        {MORE("y[i] = sum(k < i) x[i-1-k,0]"), NULL},
        {MORE("y[i] = sum(k <= i) x[i-1-k,0]"), "t.task:9:22: the read can leave 'x'"},
        {MORE("y[i] = sum(i <= k < N) x[k-i,0]"), NULL},
        {MORE("y[i] = sum(i < k < N) x[k-i-1,0]"), NULL},
        {MORE("y[i] = sum(i < k < N) x[k-i-2,0]"), "t.task:9:25: the read can leave 'x'"},
        {MORE("y[i] = sum(k < i, q < i - k) x[k+q,0]"), NULL},
        {MORE("y[i] = sum(k < 3) x[i+k,0]"), "t.task:9:21: the read can leave 'x'"},
        {MORE("y[i] = sum(k < 3 | i + k < N) x[i+k,0]"), NULL},
        {MORE("y[i] = sum(k < 3 | i + k - 1 >= 0 && i + k <= N) x[i+k-1,0]"), NULL},
        {MORE("y[i] = sum(k < 3 | i + k - 1 >= 0 || i + k <= N) x[i+k-1,0]"),
         "t.task:9:52: the read can"},
        {MORE("y[i] = sum(k < 3 | (i+1-k) % 2 == 0 && (i+1-k)//2 >= 0 && (i+1-k)//2 < M) "
              "x[0,(i+1-k)//2]"),
         NULL},
        {MORE("y[i] = sum(k < 3 | i+1-k >= 0 && i+1-k < 2*M) x[0,(i+1-k)//2]"), NULL},
        {MORE("y[i] = sum(k < 3 | i+1-k >= 0) x[0,(2 + i - k - 1)//2]"), NULL},
        {MORE("y[i] = sum(k < 3 | (i+1-k)//2 < M) x[0,(i+1-k)//2]"), "t.task:9:40: the read can"},
        {MORE("y[i] = sum(k < 3 | !(i+k >= N)) x[i+k,0]"), NULL},
        {MORE("y[i] = if(i + 2 < N, sum(k < 3) x[i+k,0], 0)"), NULL},
        {MORE("y[i] = sum(k < 3) pad(x[i+k-1,0], 0)"), NULL},
        {MORE("y[i] = sum(k < 3) pad(x[i+k-1,k//(k-1)], 0)"), "t.task:9:31: an integer division"},
        {MORE("y[i] = pad(x[u[i],u[i+1]], 0)"), "t.task:9:21: the read can leave 'u'"},
        {MORE("y[i] = pad(x[u[i],u[i]*2], 0)"), NULL},
        {MORE("y[i] = x[i,t[i]]"), NULL},
        {MORE("y[i] = x[t[i],t[i]]"), NULL},
        {MORE("y[i] = x[i,t[i]+1]"),
         "t.task:9:12: the read can leave 'x': this index goes from 1 to 6"},
        {MORE("y[i] = x[i,u[i]]"),
         "t.task:9:12: the read can leave 'x': this index goes from -1 to 5"},
        {MORE("y[i] = if(u[i] >= 0, x[i,u[i]], 0)"), NULL},
        {MORE("y[i] = x[i,clamp(u[i],0,M-1)] + x[i,maximum(u[i],0)]"), NULL},
        {MORE("y[i] = x[i,(u[i]+7) % M]"), NULL},
        {MORE("y[i] = x[i,u[i]//u[i]]"), "t.task:9:12: an integer division by zero"},
        {MORE("y[i] = 3//u[i]"), NULL},
        {MORE("y[i] = h[g[i]*128]"), NULL},
        {MORE("y[i] = x[i,argmax(k) x[i,k]] + x[argmin(k) x[k,0],0]"), NULL},
        {MORE("y[i] = x[argmax(k) x[i,k],0] + x[i,argmin(k) x[k,0]]"), "t.task:9:36: the read can"},
        {MORE("y[i] = x[i,max(k) t[k]]"), NULL},
        {MORE("y[i] = x[i,sum(k) t[k]]"), "t.task:9:12: nothing is known about where this index"},
        {MORE("y[i] = x[w[i],w[i]]\nlet w[i] : i32 = t[i]//2 + if(i > 2, 1, 0)"), NULL},
        {MORE("y[i] = x[w[i],w[i]]\nlet w[i] : i32 = t[i] + 3"), "t.task:9:10: the read can"},
        {MORE("y[i] = x[w[i],0]\nin w[N] : i64 = minimum(2*t[i], 7)"), NULL},
        {MORE("y[i] = x[0,u[i]]\nassume u[i] >= 0"), NULL},
        {MORE("y[i] = x[0,u[i]]\nassume u[i] >= 6"), "t.task:5:4: the assumptions leave no value"},
        {MORE("y[i] = sum(k) x[i,k]*x[k,0]"),
         "t.task:9:24: 'k' runs over 6 elements elsewhere, here over 8 (with N=8 M=6)"},
        {MORE("y[i] = sum(k < M) x[i,k]*x[k,0]"), NULL},
        {MORE("y[i] = sum(k < M//(i-2)) 1"), "t.task:9:16: an integer division by zero"},
        {MORE("y[i] = sum(k < 9223372036854775807) sum(q < 9) 1"),
         "t.task:9:8: a reduction of more than 2^60 terms"},
        {MORE("y[i] = sum(k <= 9223372036854775807) 1"), "t.task:9:17: this does not fit"},
        {MORE("y[i] = sum(k < 0-3) x[99,k]"), NULL},
        {MORE("in a[N] : f32 = r[i+1]\nrand r[N] ~ ones\ny[i] = a[i]"),
         "t.task:9:19: the read can leave 'r'"},
        {MORE("assume symmetric(x)\ny[i] = 0"), "t.task:9:1: a matrix of 8 by 6 cannot be"},
        {MORE("assume x[i,j] > 1/(N-8)\ny[i] = 0"), "t.task:9:17: the number is not finite"},
        {MORE("assume x[i,j] == 0 | 3 % i == 0\ny[i] = 0"), "t.task:9:22: an integer division"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        bool ok = bind_text(rows[i].text, NULL, 0, &err);
        CHECKF(ok == !rows[i].expected, "row %zu: %s", i, err.text);
        if (rows[i].expected)
            CHECKF(strncmp(err.text, rows[i].expected, strlen(rows[i].expected)) == 0,
                   "row %zu: %s", i, err.text);
    }
}

static void outputs_are_covered_once(void) {
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {TASK("out y[N,2] : f32\ny[i,0] = 1\ny[i,1] = 2"), NULL},
        {TASK("out y[2,2] : f32\ny[0,i] = 1\ny[1,N-8] = 2\ny[M-5,1] = 3"), NULL},
        {TASK("out y[N,2] : f32\ny[i,0] = 1"),
         "t.task:4:5: 8 of the 16 elements of 'y' are not defined (with N=8 M=6)"},
        {TASK("out y[N,2] : f32\ny[i,0] = 1\ny[i,N-8] = 2"),
         "t.task:6:1: some elements of 'y' are defined twice (with N=8 M=6)"},
        {TASK("out y[N,2] : f32\ny[i,0] = 1\ny[i,2] = 2"),
         "t.task:6:5: the index is 2, the dimension has 2 elements"},
        {TASK("out y[N,2] : f32\ny[i,0] = 1\ny[i,-1] = 2"), "t.task:6:5: the index is -1"},
        {TASK("out y[N,2] : f32\ny[i,0] = 1\ny[i,1//(N-8)] = 2"), "t.task:6:5: the index divides"},
        {TASK("inout y[N,2] : f32 ~ ones\ny[i,0] = y[i,1]"), "t.task:4:7: 8 of the 16 elements"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        bool ok = bind_text(rows[i].text, NULL, 0, &err);
        CHECKF(ok == !rows[i].expected, "row %zu: %s", i, err.text);
        if (rows[i].expected)
            CHECKF(strncmp(err.text, rows[i].expected, strlen(rows[i].expected)) == 0,
                   "row %zu: %s", i, err.text);
    }
}

static void sizes_are_checked(void) {
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"task t \"T\"\ndim N = 0\nout y[N] : f32\ny[i] = 1\n",
         "t.task:2:5: the dimension 'N' is 0"},
        {"task t \"T\"\ndim N = 4, P = N-4\nout y[N] : f32\ny[i] = 1\n",
         "t.task:2:12: the dimension 'P' is 0"},
        {"task t \"T\"\ndim N = 4, P = 1//(N-4)\nout y[N] : f32\ny[i] = 1\n",
         "t.task:2:12: the dimension divides by zero"},
        {"task t \"T\"\ndim N = 4\nout y[N-4] : f32\ny[i] = 1\n", "t.task:3:7: an extent of 0"},
        {"task t \"T\"\ndim N = 4\nout y[N//(4-N)] : f32\ny[i] = 1\n",
         "t.task:3:7: the extent divides"},
        {"task t \"T\"\ndim N = 4294967296\nout y[N,N,N] : f32\ny[i,j,k] = 1\n",
         "t.task:3:5: the tensor's size does not fit 64 bits"},
        {"task t \"T\"\ndim N = 1048576\nout y[N,N,17] : bool\ny[i,j,k] = 1 < 2\n", NULL},
        {"task t \"T\"\ndim N = 1048576\nout y[N,N,33] : bool\ny[i,j,k] = 1 < 2\n",
         "t.task:3:5: the tensors up to here take more than 2^45 bytes"},
        {"task t \"T\"\ndim N = 4611686018427387904, P = N*4\nout y : f32\ny = 1\n",
         "t.task:2:30: the dimension divides by zero or does not fit"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        bool ok = bind_text(rows[i].text, NULL, 0, &err);
        CHECKF(ok == !rows[i].expected, "row %zu: %s", i, err.text);
        if (rows[i].expected)
            CHECKF(strncmp(err.text, rows[i].expected, strlen(rows[i].expected)) == 0,
                   "row %zu: %s", i, err.text);
    }
}

static void distributions_are_checked(void) {
    static const struct {
        const char *type, *dist, *expected;
    } rows[] = {
        {"f32", "uniform(1, 0)", "uniform(a, b) needs a <= b"},
        {"f32", "normal(0, -1)", "needs a deviation of at least 0"},
        {"f32", "bernoulli(1.5)", "needs a probability"},
        {"i32", "randint(3, 3)", "needs integers lo < hi"},
        {"i32", "randint(0.5, 3)", "needs integers lo < hi"},
        {"i8", "randint(0, 200)", "does not hold"},
        {"u8", "randint(-1, 2)", "does not hold"},
        {"f32", "uniform(0, 1/0)", "number is not finite"},
        {"f32", "uniform(0, log(0))", "number is not finite"},
        {"f32", "uniform(-1/sqrt(N*9), pow(2, 3))", NULL},
        {"u8", "randint(0, 256)", NULL},
        {"i8", "randint(-128, 128)", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        struct err err = {0};
        snprintf(text, sizeof text,
                 "task t \"T\"\ndim N = 4\nin x[N] : %s ~ %s\nout y[N] : f32\ny[i] = x[i]\n",
                 rows[i].type, rows[i].dist);
        bool ok = bind_text(text, NULL, 0, &err);
        CHECKF(ok == !rows[i].expected, "row %zu: %s", i, err.text);
        if (rows[i].expected)
            CHECKF(strstr(err.text, rows[i].expected) && strncmp(err.text, "t.task:3:", 9) == 0,
                   "row %zu: %s", i, err.text);
    }
}

static void settings_apply(void) {
    struct fixture f;
    struct inst *in;
    if (fixture_text(&f, "task t \"T\"\ndim N = 4, P = 2*N, M = 3\nout y[P,M] : f64\ny[i,j] = i\n"
                         "check N = 5, M = 1\n")) {
        struct binding set[] = {{S("N"), 7}};
        CHECK(task_bind(f.task, set, 1, f.a, &in, &f.err));
        CHECK(in->dims[0] == 7 && in->dims[1] == 14 && in->dims[2] == 3);
        CHECK(in->tensors[0].count == 42 && in->tensors[0].bytes == 336);
        CHECK(in->tensors[0].stride[0] == 3 && in->tensors[0].stride[1] == 1);
        CHECK(str_is(inst_label(in, f.a), "N=7 M=3"));
        CHECK(task_bind_check(f.task, 0, f.a, &in, &f.err));
        CHECK(in->dims[0] == 5 && in->dims[1] == 10 && in->dims[2] == 1);
        set[0].name = S("P");
        CHECK(!task_bind(f.task, set, 1, f.a, &in, &f.err) && strstr(f.err.text, "cannot be set"));
        set[0].name = S("Q");
        CHECK(!task_bind(f.task, set, 1, f.a, &in, &f.err) &&
              strstr(f.err.text, "no dimension 'Q'"));
        set[0] = (struct binding){S("N"), 0};
        CHECK(!task_bind(f.task, set, 1, f.a, &in, &f.err) && strstr(f.err.text, "at least 1"));
    }
    fixture_end(&f);
}

static void dims_evaluate(void) {
    struct fixture f;
    if (fixture_text(&f, "task t \"T\"\ndim A = 7, B = -(-A//2) % 5 + maximum(A, 3)*abs(2-4)\n"
                         "dim D = if(A > 3, clamp(A, 1, 5), 9)\nout y : f32\ny = A\n"))
        CHECKF(f.in->dims[1] == 4 + 14 && f.in->dims[2] == 5, "%lld %lld", (long long)f.in->dims[1],
               (long long)f.in->dims[2]);
    fixture_end(&f);
}

static const struct tap_case cases[] = {
    {"bounds are proved", bounds_are_proved},
    {"bounds of reductions are proved", bounds_of_reductions_are_proved},
    {"outputs are covered once", outputs_are_covered_once},
    {"sizes are checked", sizes_are_checked},
    {"distributions are checked", distributions_are_checked},
    {"settings apply", settings_apply},
    {"dimensions evaluate", dims_evaluate},
};
TAP_CASES(cases)
