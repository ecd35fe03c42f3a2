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
        {TASK("out y[N] : f32\ny[i] = x[i*9223372036854775807, 0]"), "t.task:5:10: the index does"},
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
        {"f32", "uniform(0, 1/0)", "cannot be evaluated or is not finite"},
        {"f32", "uniform(0, log(0))", "cannot be evaluated or is not finite"},
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
    {"sizes are checked", sizes_are_checked},
    {"distributions are checked", distributions_are_checked},
    {"settings apply", settings_apply},
    {"dimensions evaluate", dims_evaluate},
};
TAP_CASES(cases)
