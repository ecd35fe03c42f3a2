/* The language: what parses, and what every malformed file is told. */
#include "fixture.h"

/* A file around one line, so that tables stay readable: `%` stands at line 6. */
#define HEAD                                                                                       \
    "task t \"T\"\ndim N = 4, M = 6\nin x[N,M] : f32 ~ normal(0,1)\n"                              \
    "in k[N] : i32 ~ randint(0,4)\nout y[N,M] : f32\n"
#define WHOLE(line)      HEAD line "\n"
#define BODY(expression) HEAD "y[i,j] = " expression "\n"

static const struct bad {
    const char *text, *expected;
} bad[] = {
    {"", "t.task:1:1: expected 'task', found the end of the file"},
    {"dim N = 4\n", "t.task:1:1: expected 'task', found 'dim'"},
    {"task\n", "t.task:1:5: expected the task's name"},
    {"task t\n", "t.task:1:7: expected the task's title"},
    {"task t \"T\n", "t.task:1:8: the text is not closed by a quote"},
    {"task t \"T\" x\n", "t.task:1:12: expected the end of the line, found 'x'"},
    {"task t \"T\"\n", "t.task:2:1: the task has no output"},
    {"task t \"T\"\ntask u \"U\"\n", "t.task:2:1: a second task in one file"},
    {"task t \"T\"\ndim N = 0x10\n", "t.task:2:9: a number runs into what follows it"},
    {"task t \"T\"\ndim N = 99999999999999999999\n", "t.task:2:9: the number does not fit"},
    {"task t \"T\"\ndim N = 1e999\n", "t.task:2:9: the number does not fit"},
    {"task t \"T\"\ndim N = 4.5\n", "t.task:2:9: a dimension must be an integer"},
    {"task t \"T\"\ndim N = M\n", "t.task:2:9: 'M' is not a dimension"},
    {"task t \"T\"\ndim N = 4, N = 5\n", "t.task:2:12: 'N' is declared already"},
    {"task t \"T\"\ndim exp = 4\n", "t.task:2:5: 'exp' is a word of the language"},
    {"task t \"T\"\ndim N 4\n", "t.task:2:7: expected '=', found '4'"},
    {"task t \"T\"\nin x[4]\n", "t.task:2:8: expected ':', found the end of the line"},
    {"task t \"T\"\nin x[4] : f33 ~ ones\n", "t.task:2:11: expected an element type, found 'f33'"},
    {"task t \"T\"\nin x[4] : f32\n", "t.task:2:14: expected '~', found the end of the line"},
    {"task t \"T\"\nin x[4] : f32 ~ gauss(0,1)\n", "t.task:2:17: expected a distribution"},
    {"task t \"T\"\nin x[4] : f32 ~ uniform(0)\n", "t.task:2:26: expected ',', found ')'"},
    {"task t \"T\"\nin x[4] : i32 ~ uniform(0,1)\n", "t.task:2:17: uniform makes real numbers"},
    {"task t \"T\"\nin x[4] : bool ~ randint(0,2)\n", "t.task:2:18: randint makes integers"},
    {"task t \"T\"\nin x[4] : f32 ~ bernoulli(1 < 2)\n",
     "t.task:2:27: a distribution takes numbers"},
    {"task t \"T\"\nout y[4] : f32 ~ ones\n", "t.task:2:16: an output has no distribution"},
    {"task t \"T\"\nin x[1,1,1,1,1,1,1,1,1] : f32 ~ ones\n", "t.task:2:21: more than 8 dimensions"},
    {"task t \"T\"\nout y[4] : f32\n", "t.task:2:5: the output 'y' is never defined"},
    {"task t \"T\"\nout y : f32\ny = 1\ny = 2\n", "t.task:4:1: 'y' is defined already"},
    {"task t \"T\"\naccuracy f8\n", "t.task:2:10: expected an accuracy class, found 'f8'"},
    {"task t \"T\"\ntorch x\n", "t.task:2:7: expected a text, found 'x'"},
    {"task t \"T\"\ntorch \"x\"\ntorch \"x\"\n", "t.task:3:1: a second torch line"},
    {WHOLE("check Q = 3"), "t.task:6:7: expected a dimension, found 'Q'"},
    {WHOLE("check N = 0"), "t.task:6:11: a dimension must be at least 1"},
    {WHOLE("check N = 2.5"), "t.task:6:11: expected a whole number"},
    {WHOLE("check N = 2, N = 3"), "t.task:6:14: 'N' is set twice"},
    {WHOLE("dim P = N*2\ncheck P = 3"), "t.task:7:7: 'P' follows from other dimensions"},
    {WHOLE("z[i,j] = 1"), "t.task:6:1: 'z' is neither a declaration nor an output"},
    {WHOLE("x[i,j] = 1"), "t.task:6:1: 'x' is an input"},
    {WHOLE("y[i] = 1"), "t.task:6:1: 'y' has 2 dimensions, not 1"},
    {WHOLE("y[i,i] = 1"), "t.task:6:5: the index variable 'i' stands twice on the left"},
    {WHOLE("y[i,x] = 1"), "t.task:6:5: 'x' is declared already, as a tensor; here it is an index"},
    {WHOLE("y[i < 3,j] = 1"), "t.task:6:5: the range of this index is the declared dimension"},
    {WHOLE("y[i,j]"), "t.task:6:7: expected '=', found the end of the line"},
    {WHOLE("= 3"), "t.task:6:1: expected a declaration or a definition, found '='"},
    {BODY("x[i,j] | i > 0"), "t.task:6:17: expected an operator or the end of the line, found '|'"},
    {BODY("x[i,1.5]"), "t.task:6:14: an index must be an integer, this is a real number"},
    {BODY("x[i,j/2]"), "t.task:6:14: an index must be an integer, this is a real number"},
    {BODY("x[i]"), "t.task:6:10: 'x' has 2 dimensions, not 1"},
    {BODY("x"), "t.task:6:10: 'x' has 2 dimensions, not 0"},
    {BODY("q"), "t.task:6:10: 'q' is not known here"},
    {BODY("y[i,j]"), "t.task:6:10: 'y' is an output and cannot be read"},
    {BODY("foo(x[i,j])"), "t.task:6:10: there is no function 'foo'"},
    {BODY("exp(1, 2)"), "t.task:6:10: exp takes 1 argument, not 2"},
    {BODY("clamp(1, 2)"), "t.task:6:10: clamp takes 3 arguments, not 2"},
    {BODY("if(x[i,j] > 0, 1)"), "t.task:6:10: if takes 3 arguments, not 2"},
    {BODY("if(x[i,j], 1, 0)"), "t.task:6:13: a real number where a truth value is needed"},
    {BODY("if(1 < 2, 1, 1 < 2)"), "t.task:6:23: the sides of if differ"},
    {BODY("x[i,j] > 0"), "t.task:6:10: a truth value for 'y' of type f32"},
    {BODY("x[i,j] * (x[i,j] > 0)"), "t.task:6:20: a truth value where a number is needed"},
    {BODY("1 < x[i,j] < 2"), "t.task:6:21: comparisons do not chain"},
    {BODY("!x[i,j]"), "t.task:6:11: a real number where a truth value is needed"},
    {BODY("x[i,j] // 2"), "t.task:6:10: // takes integers, this is a real number"},
    {BODY("x[i,j] % 2"), "t.task:6:10: % takes integers, this is a real number"},
    {BODY("x[i,j] ** 2"), "t.task:6:17: there is no operator '**'"},
    {BODY("x[i,j] & 2"), "t.task:6:17: there is no operator '&'"},
    {BODY("x[i,j] ? 1 : 2"), "t.task:6:17: there is no operator '?'"},
    {BODY("x[i,j] = 2"), "t.task:6:17: expected an operator or the end of the line, found '='"},
    {BODY("x[i,j] x[i,j]"), "t.task:6:17: expected an operator or the end of the line, found 'x'"},
    {BODY("(x[i,j]"), "t.task:7:1: expected ')', found the end of the file"},
    {BODY("x[i,j"), "t.task:7:1: expected ']', found the end of the file"},
    {BODY("2 +"), "t.task:7:1: expected an expression, found the end of the file"},
    {BODY("2 +\ncheck N = 3"), "t.task:7:1: expected an expression, found the word 'check'"},
    {BODY("2 $ 3"), "t.task:6:12: a character that the task language does not use"},
    {BODY("2 \xc3\x97 3"), "t.task:6:12: a character that the task language does not use"},
    {BODY("2x"), "t.task:6:10: a number runs into what follows it"},
    {WHOLE("let z[i] = z[i]\ny[i,j] = z[i]"), "t.task:6:12: the let 'z' is defined by itself"},
    {WHOLE("let a[i] = b[i]\nlet b[i] = a[i]\ny[i,j] = a[i]"),
     "t.task:6:12: the let 'b' is defined"},
    {WHOLE("let z[i] = i\ny[i,j] = 1"), "t.task:6:5: the range of 'i' follows neither"},
    {WHOLE("let m[i] = k[i] > 0\ny[i,j] = 1"), "t.task:6:12: a truth value for 'm' of type f64"},
    {WHOLE("let m[i] : bool = k[i]\ny[i,j] = 1"), "t.task:6:19: a number for 'm' of type bool"},
    {WHOLE("let m[i] : i32 = x[i,0]\ny[i,j] = 1"),
     "t.task:6:18: a real number for 'm' of type i32"},
};

static void malformed_files_are_explained(void) {
    struct arena *a = arena_new((size_t)16 << 20);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct task *t;
        struct err err = {0};
        bool ok = task_parse(S("t.task"), str_view(bad[i].text), a, &t, &err);
        CHECKF(!ok && err.kind == ERR_INPUT, "row %zu", i);
        CHECKF(strncmp(err.text, bad[i].expected, strlen(bad[i].expected)) == 0,
               "row %zu:\n#  got  %.120s\n#  want %s", i, err.text, bad[i].expected);
        CHECKF(strstr(err.text, "\n") && strstr(err.text, "^"), "row %zu has a caret", i);
        arena_reset(a);
    }
    arena_free(a);
}

static void whole_diagnostic(void) {
    struct arena *a = arena_new((size_t)1 << 20);
    struct task *t;
    struct err err = {0};
    CHECK(!task_parse(S("t.task"), S(BODY("max(x[i,j], 0)")), a, &t, &err));
    CHECKF(strcmp(err.text,
                  "t.task:6:14: 'x' is a tensor already; a reduction runs over a new name\n"
                  "  6 | y[i,j] = max(x[i,j], 0)\n    |              ^\n"
                  "hint: the larger of two values is maximum(a, b); a reduction is "
                  "max(k) x[k], max(k < 8) x[k] or max(j <= k < N) x[k]") == 0,
           "%s", err.text);
    arena_free(a);
}

static void a_full_file_parses(void) {
    struct fixture f;
    if (!fixture_text(&f, "# comment\n\ntask all \"Quote \\\" and \\\\\"  # more\n"
                          "dim A = 4, B = A*2,\n    D = (B + 1)//2 % 8\n"
                          "in  x[A,B] : f32 ~ uniform(-1/sqrt(A*9), 1/sqrt(A*9))\n"
                          "param g[B] : bf16 ~ ones\n"
                          "in  s : f32 ~ normal(0,1)\n"
                          "in  m[A,B] : bool ~ bernoulli(0.5)\n"
                          "out y[A,B] : f16\nout n[A] : i32\n"
                          "y[i,j] = if(m[i,j] && !(i == 0 || j >= A), z[i,j],\n"
                          "            clamp(x[i,B-1-j], -1, inf))\n"
                          "n[i] = floor(x[i,0]) * 2 + i % 3\n"
                          "let z[i,j] : bf16 = g[j] * x[i,j] -\n   s\n"
                          "check A = 3\ncheck A = 17\n"
                          "torch \"f(x)\"\naccuracy bf16\r\n"))
        return fixture_end(&f);
    const struct task *t = f.task;
    CHECK(str_is(t->name, "all") && str_is(t->title, "Quote \" and \\"));
    CHECK(t->ndims == 3 && t->dims[1].derived && !t->dims[0].derived && t->dims[2].derived);
    CHECK(f.in->dims[1] == 8 && f.in->dims[2] == 4);
    CHECK(t->ntensors == 7 && t->nstatements == 3 && t->nchecks == 2);
    CHECK(t->accuracy == ACCURACY_BF16 && str_is(t->torch, "f(x)"));
    size_t z = (size_t)tensor_find(t, S("z")), y = (size_t)tensor_find(t, S("y"));
    bool seen = false;
    for (size_t i = 0; i < t->nstatements; i++) {
        if (t->statements[i].tensor == y)
            CHECK(seen);
        seen |= t->statements[i].tensor == z;
    }
    CHECK(f.in->tensors[z].extent[0] == 4 && f.in->tensors[z].extent[1] == 8);
    CHECK(str_is(inst_label(f.in, f.a), "A=4"));
    fixture_end(&f);
}

static const struct expr *body_of(struct fixture *f, const char *text) {
    return fixture_text(f, text) ? f->task->statements[0].body : NULL;
}

static void precedence_and_kinds(void) {
    struct fixture f;
    const struct expr *e = body_of(&f, "task t \"T\"\nout y : f32\ny = 1 + 2*3 - -4 // 2\n");
    CHECK(e && e->kind == EXPR_SUB && e->value_kind == VALUE_INT);
    CHECK(e->args[0]->kind == EXPR_ADD && e->args[0]->args[1]->kind == EXPR_MUL);
    CHECK(e->args[1]->kind == EXPR_FLOORDIV && e->args[1]->args[0]->kind == EXPR_NEG);
    fixture_end(&f);
    e = body_of(&f, "task t \"T\"\nout y : bool\ny = 1 < 2 && !(2.5 >= 1) || 3 != 4\n");
    CHECK(e && e->kind == EXPR_OR && e->args[0]->kind == EXPR_AND && e->args[1]->kind == EXPR_NE);
    fixture_end(&f);
    e = body_of(&f, "task t \"T\"\nout y : f32\ny = maximum(1, 2) / abs(3) + minimum(1, 2.0)\n");
    CHECK(e && e->value_kind == VALUE_REAL && e->args[0]->kind == EXPR_DIV &&
          e->args[0]->value_kind == VALUE_REAL && e->args[0]->args[0]->value_kind == VALUE_INT &&
          e->args[1]->value_kind == VALUE_REAL);
    fixture_end(&f);
}

/* prefix, then `unit` n times, then `middle`, then `close` n times. */
static bool nests(int n, const char *unit, const char *middle, const char *close) {
    struct arena *a = arena_new((size_t)64 << 20);
    struct buf b;
    struct task *t;
    struct err err = {0};
    buf_init(&b, 1 << 20);
    buf_puts(&b, S("task t \"T\"\nout y : f32\ny = "));
    for (int i = 0; i < n; i++)
        buf_puts(&b, str_view(unit));
    buf_puts(&b, str_view(middle));
    for (int i = 0; i < n; i++)
        buf_puts(&b, str_view(close));
    bool ok = task_parse(S("t.task"), buf_str(&b), a, &t, &err);
    if (!ok)
        CHECKF(strstr(err.text, "nests more than 200 levels"), "%s", err.text);
    buf_release(&b);
    arena_free(a);
    return ok;
}

static void depth_is_limited(void) {
    static const struct {
        const char *unit, *middle, *close;
    } shapes[] = {{"(", "1", ")"},    {"1+", "1", ""},   {"", "1", "+1"},        {"-", "1", ""},
                  {"exp(", "1", ")"}, {"1-(", "1", ")"}, {"if(1<2,", "1", ",0)"}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        CHECKF(nests(90, shapes[i].unit, shapes[i].middle, shapes[i].close), "shape %zu", i);
        CHECKF(!nests(20000, shapes[i].unit, shapes[i].middle, shapes[i].close), "shape %zu", i);
    }
}

static void sizes_are_limited(void) {
    struct arena *a = arena_new((size_t)64 << 20);
    struct buf b;
    struct task *t;
    struct err err = {0};
    buf_init(&b, (size_t)4 << 20);
    buf_puts(&b, S("task t \"T\"\n"));
    for (int i = 0; i < 65; i++)
        buf_printf(&b, "dim D%d = 1\n", i);
    CHECK(!task_parse(S("t.task"), buf_str(&b), a, &t, &err));
    CHECKF(strstr(err.text, "t.task:66:5: more than 64 dimensions"), "%s", err.text);
    buf_clear(&b);
    buf_puts(&b, S("task t \"T\"\n"));
    for (int i = 0; i < 65; i++)
        buf_printf(&b, "in x%d : f32 ~ ones\n", i);
    CHECK(!task_parse(S("t.task"), buf_str(&b), a, &t, &err));
    CHECKF(strstr(err.text, "t.task:66:4: more than 64 tensors"), "%s", err.text);
    buf_clear(&b);
    for (size_t i = 0; i <= TASK_MAX_BYTES; i++)
        buf_putc(&b, '#');
    CHECK(!task_parse(S("t.task"), buf_str(&b), a, &t, &err));
    CHECKF(strstr(err.text, "at most 1048576"), "%s", err.text);
    buf_clear(&b);
    buf_printf(&b, "task %0100d \"T\"\n", 1);
    CHECK(!task_parse(S("t.task"), buf_str(&b), a, &t, &err));
    buf_clear(&b);
    buf_puts(&b, S("task "));
    for (int i = 0; i < 65; i++)
        buf_putc(&b, 'a');
    CHECK(!task_parse(S("t.task"), buf_str(&b), a, &t, &err));
    CHECKF(strstr(err.text, "a name of 65 characters"), "%s", err.text);
    buf_release(&b);
    arena_free(a);
}

static void tables_agree(void) {
    enum dtype t;
    CHECK(dtype_find(S("bf16"), &t) && t == DTYPE_BF16 && dtype_info(t)->bytes == 2);
    CHECK(!dtype_find(S("bf1"), &t) && !dtype_find(S(""), &t));
    CHECK(strcmp(function_info(FUNCTION_CLAMP)->name, "clamp") == 0);
    CHECK(function_info(FUNCTION_CLAMP)->args == 3 && function_info(FUNCTION_EXP)->args == 1);
    CHECK(accuracy_unit(ACCURACY_FP32) == 0x1p-24 && accuracy_unit(ACCURACY_BF16) == 0x1p-8);
    CHECK(strcmp(accuracy_name(ACCURACY_TF32), "tf32") == 0);
}

static void show_reads_back(void) {
    struct fixture f;
    struct buf b;
    buf_init(&b, 1 << 16);
    if (fixture_text(&f, "task s \"Shown\"\ndim N = 4\nin x[N] : f32 ~ uniform(0, 1/sqrt(N))\n"
                         "out y[N] : f32\nlet z[i] : bf16 = (x[i] - (1 - x[N-1-i]))*0.1\n"
                         "y[i] = -(z[i]*(2.0 + z[i]))/if(x[i] > 0 && i != 2, 3, (i + 1)*1e-7)\n"
                         "check N = 3\ntorch \"f(x)\"\n"))
        task_show(f.in, &b);
    CHECKF(str_eq(buf_str(&b),
                  S("s: Shown\n  N = 4\n  in    x[4] : f32 ~ uniform(0, 1/sqrt(N))  (16 B)\n"
                    "  out   y[4] : f32  (16 B)\n"
                    "  let z[i < N] : bf16 = (x[i] - (1 - x[N - 1 - i]))*0.1\n"
                    "  y[i] = -(z[i]*(2.0 + z[i]))/if(x[i] > 0 && i != 2, 3, (i + 1)*1e-07)\n"
                    "  accuracy fp32\n  checked at N=3\n  PyTorch: f(x)\n")),
           "%s", b.p);
    buf_release(&b);
    fixture_end(&f);
}

static const struct tap_case cases[] = {
    {"malformed files are explained", malformed_files_are_explained},
    {"a diagnostic in full", whole_diagnostic},
    {"a full file parses", a_full_file_parses},
    {"precedence and kinds", precedence_and_kinds},
    {"depth is limited", depth_is_limited},
    {"sizes are limited", sizes_are_limited},
    {"tables agree", tables_agree},
    {"show writes the mathematics anew", show_reads_back},
};
TAP_CASES(cases)
