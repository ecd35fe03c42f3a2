/* Reductions, padding, indices from data, definitions in pieces, defined inputs, assumptions: what
 * the parser makes of them, and what every malformed one is told. */
#include "fixture.h"

/* A file around one line, which stands at line 9. */
#define HEAD                                                                                       \
    "task t \"T\"\ndim N = 4, M = 6\nin x[N,M] : f32 ~ normal(0,1)\n"                              \
    "in t[N] : i32 ~ randint(0,4)\nin b[N] : bool ~ bernoulli(0.5)\n"                              \
    "rand r[N,M] ~ uniform(0,1)\nlet l[i] = x[i,0]\nout y[N,M] : f32\n"
#define LINE(line)       HEAD line "\n"
#define BODY(expression) HEAD "y[i,j] = " expression "\n"
#define DONE             "\ny[i,j] = x[i,j]\n"

struct bad {
    const char *text, *expected;
};

static const struct bad bad[] = {
    /* heads of reductions */
    {BODY("sum x[i,j]"), "t.task:9:10: expected an expression, found the word 'sum'"},
    {BODY("sum() x[i,j]"), "t.task:9:14: expected the variable of the reduction, found ')'"},
    {BODY("sum(k"), "t.task:10:1: expected , | or ), found the end of the file"},
    {BODY("sum(k x[i,k]"), "t.task:9:16: expected , | or ), found 'x'"},
    {BODY("sum(k) "), "t.task:9:17: expected what is reduced, found the end of the line"},
    {BODY("sum(k) + 1"), "t.task:9:17: expected an expression, found '+'"},
    {BODY("sum(k,) x[i,k]"), "t.task:9:16: expected the variable of the reduction, found ')'"},
    {BODY("sum(k > 2) x[i,k]"), "t.task:9:16: expected , | or ), found '>'"},
    {BODY("sum(2) x[i,j]"), "t.task:9:15: expected < or <=, found ')'"},
    {BODY("sum(2 <= 3) x[i,j]"), "t.task:9:19: expected the variable of the reduction, found '3'"},
    {BODY("sum(j <= k) x[i,k]"), "t.task:9:20: expected < or <=, found ')'"},
    {BODY("sum(k == 2) x[i,k]"), "t.task:9:16: expected , | or ), found '=='"},
    {BODY("sum(k <) x[i,k]"), "t.task:9:17: expected an expression, found ')'"},
    {BODY("sum(k < 2.5) x[i,k]"), "t.task:9:18: a bound of a reduction must be an integer"},
    {BODY("sum(k < t[i]) x[i,k]"), "t.task:9:18: the range of a reduction depends on data"},
    {BODY("sum(k < sum(q < 3) q) x[i,k]"), "t.task:9:18: the range of a reduction depends on"},
    {BODY("sum(0.5 <= k < 3) x[i,k]"), "t.task:9:14: a bound of a reduction must be an integer"},
    {BODY("sum(k < k) x[i,k]"), "t.task:9:18: 'k' is not known here"},
    {BODY("sum(k < q, q < 3) x[i,k]"), "t.task:9:18: 'q' is not known here"},
    {BODY("sum(k < 3 | ) x[i,k]"), "t.task:9:22: expected an expression, found ')'"},
    {BODY("sum(k | k) x[i,k]"), "t.task:9:18: an integer where a truth value is needed"},
    {BODY("sum(k | k > 1 | k > 2) x[i,k]"), "t.task:9:24: expected ')', found '|'"},
    {BODY("sum(k | q > 1) x[i,k]"), "t.task:9:18: 'q' is not known here"},
    {BODY("max(x[i,j], 0)"), "t.task:9:14: 'x' is a tensor already"},
    {BODY("min(0, x[i,j])"), "t.task:9:15: expected < or <=, found ','"},
    /* names */
    {BODY("sum(i) x[i,j]"), "t.task:9:14: 'i' is a variable of this statement already"},
    {BODY("sum(i < 3) x[i,j]"), "t.task:9:14: 'i' is a variable of this statement already"},
    {BODY("sum(0 <= i < 3) x[i,j]"), "t.task:9:19: expected the variable of the reduction"},
    {BODY("sum(N) x[i,j]"), "t.task:9:14: 'N' is a dimension already"},
    {BODY("sum(t) x[i,j]"), "t.task:9:14: 't' is a tensor already"},
    {BODY("sum(exp) x[i,j]"), "t.task:9:14: 'exp' is a word of the language"},
    {BODY("sum(k) x[i,k] * sum(k) x[i,k]"), "t.task:9:30: 'k' is a variable of this statement"},
    {BODY("sum(k, k) x[k,k]"), "t.task:9:17: 'k' is a variable of this statement already"},
    {BODY("sum(k) x[i,k] + k"), "t.task:9:26: 'k' is not known here"},
    {LINE("let n[i] = x[i,0]\nin i[N] : f32 ~ ones") "y[i,j] = 0\n",
     "t.task:11:3: 'i' is declared already"},
    {LINE("let n[q] = x[q,0]\nin q[N] : f32 ~ ones\ny[i,j] = 0"),
     "t.task:9:5: the index 'q' is also the name of a tensor"},
    /* kinds */
    {BODY("sum(k) (x[i,k] > 0)"), "t.task:9:18: a truth value where a number is needed"},
    {BODY("argmax(k, q) x[q,k]"), "t.task:9:10: argmax gives the place of one variable, not of 2"},
    {BODY("sum(q) 1"), "t.task:9:14: the range of 'q' does not follow from what it indexes"},
    {BODY("sum(q) x[i,q+1]"), "t.task:9:14: the range of 'q' does not follow"},
    {BODY("x[i,max(k) x[i,k]]"), "t.task:9:14: an index must be an integer, this is a real number"},
    {BODY("x[i,l[i]]"), "t.task:9:14: an index must be an integer, this is a real number"},
    {BODY("x[b[i],j]"), "t.task:9:12: an index must be an integer, this is a truth value"},
    {LINE("dim P = sum(k < 3) k") DONE, "t.task:9:9: a reduction cannot stand here"},
    {LINE("out z[N] : i32\nz[i] = mean(k) t[k]") DONE,
     "t.task:10:8: a real number for 'z' of type i32"},
    /* padding */
    {BODY("pad(x[i,j])"), "t.task:9:10: pad takes 2 arguments, not 1"},
    {BODY("pad(x[i,j] + 1, 0)"), "t.task:9:14: pad takes a single read of a tensor with indices"},
    {BODY("pad(3, 0)"), "t.task:9:14: pad takes a single read"},
    {BODY("pad(x[i,j], b[i])"), "t.task:9:22: the tensor holds a real number, the padding is a"},
    {BODY("if(pad(b[i], 0), 1, 2)"), "t.task:9:23: the tensor holds a truth value, the padding is"},
    {BODY("pad(x[i,j], 0"), "t.task:10:1: expected ')', found the end of the file"},
    /* left sides */
    {LINE("y[i,0] = 1\ny[i,j] = 2"), "t.task:10:1: 'y' is defined already"},
    {LINE("y[i,0.5] = 1"), "t.task:9:5: a dimension must be an integer"},
    {LINE("y[i,N+i] = 1"), "t.task:9:7: 'i' is not a dimension"},
    {LINE("let z[0] = 1") DONE, "t.task:9:7: expected an index variable, found a constant"},
    {LINE("let z[N] = 1") DONE, "t.task:9:7: expected an index variable, found a constant"},
    {LINE("r[i,j] = 1") DONE, "t.task:9:1: 'r' is random numbers"},
    {LINE("l[i] = 1") DONE, "t.task:9:1: 'l' is defined by its let"},
    /* random numbers and defined inputs */
    {BODY("r[i,j]"), "t.task:9:10: 'r' is random numbers that no kernel sees"},
    {LINE("rand q[N] = 3") DONE, "t.task:9:11: random numbers state a distribution"},
    {LINE("rand q[N]") DONE, "t.task:9:10: expected '~', found the end of the line"},
    {LINE("in a[N] : f32 = l[i]") DONE, "t.task:9:17: 'l' is a let; an input is defined from"},
    {LINE("in a[N] : f32 = y[i,0]") DONE, "t.task:9:17: 'y' is an output and cannot be read"},
    {LINE("in a[N] : f32 = 2*a[i]") DONE, "t.task:9:19: the input 'a' is defined by itself"},
    {LINE("in a[N] : f32 = 2*c[i]\nin c[N] : f32 = a[i]") DONE,
     "t.task:9:19: the input 'c' is defined by itself"},
    {LINE("in a[N,M] : f32 = r[i,0]") DONE, "t.task:9:4: the definition of 'a' uses 1 of its 2"},
    {LINE("in a[N,M] : f32 = r[i,j]*k") DONE, "t.task:9:26: 'k' is not known here"},
    {LINE("in a[i < N, M] : f32 = r[i,j]") DONE, "t.task:9:4: 1 of 2 indices are named"},
    {LINE("in a[i < N, i < M] : f32 = 1") DONE, "t.task:9:13: the index variable 'i' stands twice"},
    {LINE("in a[i < N] : f32 ~ ones") DONE, "t.task:9:4: indices are named where an expression"},
    {LINE("in a[N] : f32 = b[i]") DONE, "t.task:9:17: a truth value for 'a' of type f32"},
    {LINE("in a[N] : i32 = r[i,0]") DONE, "t.task:9:17: a real number for 'a' of type i32"},
    {LINE("out z[N] : f32 = x[i,0]") DONE, "t.task:9:16: an output is declared first and defined"},
    {LINE("out z[i < N] : f32") DONE, "t.task:9:5: the indices of an output are named where it is"},
    {LINE("in a : f32") DONE, "t.task:9:11: expected '~', found the end of the line"},
    /* in place */
    {LINE("inout c[N] : f32") DONE, "t.task:9:17: expected '~', found the end of the line"},
    {LINE("inout c[N] : f32 ~ ones") DONE, "t.task:9:7: the output 'c' is never defined"},
    {LINE("inout c[N] ~ ones") DONE, "t.task:9:12: expected ':', found '~'"},
    /* assumptions */
    {LINE("assume") DONE, "t.task:9:7: expected an input declared above, found the end of"},
    {LINE("assume y[i,j] > 0") DONE, "t.task:9:8: expected an input declared above, found 'y'"},
    {LINE("assume r[i,j] > 0") DONE, "t.task:9:8: expected an input declared above, found 'r'"},
    {LINE("assume symmetric x") DONE, "t.task:9:18: expected '(', found 'x'"},
    {LINE("assume symmetric(t)") DONE, "t.task:9:18: 't' has fewer than 2 dimensions"},
    {LINE("assume symmetric(q)") DONE, "t.task:9:18: expected an input declared above, found 'q'"},
    {LINE("assume symmetric(x, t)") DONE, "t.task:9:19: expected ')', found ','"},
    {LINE("assume x[i] > 0") DONE, "t.task:9:8: 'x' has 2 dimensions, not 1"},
    {LINE("assume x[i,0] > 0") DONE, "t.task:9:12: expected an index variable, found a constant"},
    {LINE("assume x[i,j]") DONE,
     "t.task:9:14: expected == < <= > or >=, found the end of the line"},
    {LINE("assume x[i,j] != 0") DONE, "t.task:9:15: expected == < <= > or >=, found '!='"},
    {LINE("assume x[i,j] == 1 | i > j") DONE, "t.task:9:18: elements can be assumed equal to 0"},
    {LINE("assume x[i,j] == 0") DONE, "t.task:9:19: expected | and where they are 0"},
    {LINE("assume x[i,j] == 0 | i") DONE, "t.task:9:22: a condition is a truth value"},
    {LINE("assume x[i,j] == 0 | t[i] > 0") DONE, "t.task:9:22: 't' is a tensor; only indices and"},
    {LINE("assume x[i,j] == 0 | sum(k < 3) k > 0") DONE, "t.task:9:22: a reduction cannot stand"},
    {LINE("assume x[i,j] > 0 | i > j") DONE, "t.task:9:19: a condition goes with == 0 only"},
    {LINE("assume x[i,j] > j") DONE, "t.task:9:17: 'j' is not a dimension"},
    {LINE("assume b[i] > 0") DONE, "t.task:9:8: 'b' holds truth values"},
};

static void malformed_files_are_explained(void) {
    struct arena *a = arena_new((size_t)16 << 20);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct task *t;
        struct err err = {0};
        bool ok = task_parse(S("t.task"), str_view(bad[i].text), a, &t, &err);
        CHECKF(!ok && err.kind == ERR_INPUT, "row %zu wants %s", i, bad[i].expected);
        CHECKF(strncmp(err.text, bad[i].expected, strlen(bad[i].expected)) == 0,
               "row %zu:\n#  got  %.120s\n#  want %s", i, err.text, bad[i].expected);
        CHECKF(strstr(err.text, "\n") && strstr(err.text, "^"), "row %zu has a caret", i);
        arena_reset(a);
    }
    arena_free(a);
}

static const struct expr *body(struct fixture *f, const char *text) {
    return fixture_text(f, text) ? f->task->statements[f->task->nstatements - 1].body : NULL;
}

/* The body is the product that follows, no more. */
static void reductions_take_the_product(void) {
    struct fixture f;
    const struct expr *e = body(&f, BODY("sum(k) x[i,k]*x[i,k]/2 + x[i,j]"));
    CHECK(e && e->kind == EXPR_ADD && e->args[0]->kind == EXPR_REDUCE &&
          e->args[1]->kind == EXPR_READ && e->args[0]->args[0]->kind == EXPR_DIV);
    fixture_end(&f);
    e = body(&f, BODY("2*-sum(k) -x[i,k]*3"));
    CHECK(e && e->kind == EXPR_MUL && e->args[1]->kind == EXPR_NEG &&
          e->args[1]->args[0]->kind == EXPR_REDUCE &&
          e->args[1]->args[0]->args[0]->kind == EXPR_MUL);
    fixture_end(&f);
    e = body(&f, BODY("if(sum(k) x[i,k] < 3 && max(q) x[q,0] > 1, 1, 0)"));
    CHECK(e && e->args[0]->kind == EXPR_AND && e->args[0]->args[0]->kind == EXPR_LT &&
          e->args[0]->args[0]->args[0]->kind == EXPR_REDUCE);
    fixture_end(&f);
}

static void variables_are_numbered(void) {
    struct fixture f;
    const struct expr *e =
        body(&f, BODY("(sum(k, q < k | q % 2 == 0) x[q,0]*t[k]) + max(k <= j) x[i,k]"));
    if (e) {
        const struct statement *s = &f.task->statements[f.task->nstatements - 1];
        const struct reduce *a = e->args[0]->reduce, *b = e->args[1]->reduce;
        CHECK(s->nindex == 2 && s->nvars == 5 && s->position[0] == 0 && s->position[1] == 1);
        CHECK(a->op == REDUCTION_SUM && a->nvars == 2 && a->guard && a->guard->kind == EXPR_EQ);
        CHECK(a->vars[0].var == 2 && a->vars[0].inferred && a->vars[1].var == 3);
        CHECK(!a->vars[1].inferred && a->vars[1].hi->kind == EXPR_INDEX);
        CHECK(a->vars[1].hi->ref == 2 && a->vars[1].lo->integer == 0);
        CHECK(a->vars[0].hi->kind == EXPR_DIM && a->vars[0].hi->ref == 0);
        CHECK(b->op == REDUCTION_MAX && b->vars[0].var == 4 && b->vars[0].hi->kind == EXPR_ADD);
        CHECK(b->vars[0].hi->args[0]->ref == 1 && b->vars[0].hi->args[1]->integer == 1);
        CHECK(e->args[1]->args[0]->args[1]->ref == 4);
    }
    fixture_end(&f);
    e = body(&f, BODY("sum(i < k <= j + 1) x[0,0]"));
    if (e) {
        const struct reduce_var *v = &e->reduce->vars[0];
        CHECK(v->lo->kind == EXPR_ADD && v->lo->args[0]->ref == 0 && v->hi->kind == EXPR_ADD);
    }
    fixture_end(&f);
}

static void kinds_follow(void) {
    static const struct {
        const char *text;
        enum value_kind kind;
    } rows[] = {
        {BODY("sum(k) t[k]"), VALUE_INT},
        {BODY("max(k) t[k]"), VALUE_INT},
        {BODY("mean(k) t[k]"), VALUE_REAL},
        {BODY("sum(k) x[i,k]"), VALUE_REAL},
        {BODY("argmin(k) x[i,k]"), VALUE_INT},
        {BODY("pad(t[i+1], 0)"), VALUE_INT},
        {BODY("pad(t[i+1], 0.5)"), VALUE_REAL},
        {BODY("pad(x[i+1,0], -inf)"), VALUE_REAL},
        {BODY("sum(k < 3) k*k"), VALUE_INT},
        {BODY("sign(t[i])"), VALUE_REAL},
        {BODY("x[t[i], argmax(k) x[i,k]]"), VALUE_REAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        const struct expr *e = body(&f, rows[i].text);
        CHECKF(e && e->value_kind == rows[i].kind, "row %zu", i);
        fixture_end(&f);
    }
}

static void names_serve_again(void) {
    struct fixture f;
    CHECK(body(&f, BODY("(sum(k) x[i,k]) * (max(k) x[k,j]) + sum(k) sum(q) x[q,k]")) != NULL);
    fixture_end(&f);
    struct arena *a = arena_new((size_t)16 << 20);
    struct buf b;
    struct task *t;
    struct err err = {0};
    buf_init(&b, 1 << 16);
    buf_puts(&b, S(HEAD "y[i,j] = 0"));
    for (int i = 0; i < 30; i++)
        buf_puts(&b, S(" + sum(k) x[i,k]"));
    CHECKF(task_parse(S("t.task"), buf_str(&b), a, &t, &err), "%s", err.text);
    buf_puts(&b, S(" + sum(k) x[i,k]\n"));
    CHECK(!task_parse(S("t.task"), buf_str(&b), a, &t, &err));
    CHECKF(strstr(err.text, "more than 32 variables in one statement"), "%s", err.text);
    buf_release(&b);
    arena_free(a);
}

static void pieces_and_places(void) {
    struct fixture f;
    if (fixture_text(&f, "task p \"P\"\ndim N = 4\nin x[N] : f32 ~ ones\n"
                         "in t[N] : i64 ~ randint(0, N)\nin u[N] : i32 ~ randint(0, N)\n"
                         "in v[N] : i32 ~ randint(0, 9)\nout y[N,3] : f32\n"
                         "let w[i] : i32 = t[u[i]] // 2\n"
                         "y[i,2] = v[i]\ny[i,0] = x[w[i]]\ny[j,3-2] = x[j]\n")) {
        const struct task *t = f.task;
        const struct statement *s = t->statements;
        CHECK(t->nstatements == 4 && t->tensors[s[0].tensor].role == TENSOR_LET);
        CHECK(s[1].position[0] == 0 && s[1].position[1] == -1 && s[1].constant[1]->integer == 2);
        CHECK(s[3].nindex == 1 && s[3].constant[1]->kind == EXPR_SUB && s[3].nvars == 1);
        CHECK(t->tensors[1].indexes && t->tensors[2].indexes && !t->tensors[3].indexes);
        CHECK(!t->tensors[0].indexes && t->tensors[s[0].tensor].indexes);
        CHECK(f.in->tensors[1].lo == 0 && f.in->tensors[1].hi == 3);
        CHECK(f.in->tensors[s[0].tensor].lo == 0 && f.in->tensors[s[0].tensor].hi == 1);
        CHECK(f.in->tensors[3].hi == INT32_MAX && f.in->tensors[3].lo == INT32_MIN);
    }
    fixture_end(&f);
}

static void inputs_are_defined(void) {
    struct fixture f;
    if (fixture_text(&f, "task d \"D\"\ndim N = 4, M = 3\nin a[N,N] : f32 = (s[i,j] + s[j,i])/2\n"
                         "in s[p < N, q < N] : f32 = exp(r[p]) / sum(k) exp(r[k])\n"
                         "rand r[N] ~ uniform(0,1)\nrand g : i32 ~ randint(0,3)\n"
                         "in z : f32 = 2*g\n"
                         "inout c[M] : f32 ~ ones\nout y : f32\ny = a[0,0] + z\n"
                         "c[i] = c[M-1-i]\n"
                         "assume symmetric(a)\nassume a[i,j] == 0 | i > j + 1\n"
                         "assume z >= -1/2\nassume c[i] < N\n")) {
        const struct task *t = f.task;
        CHECK(t->ndefinitions == 3 && t->nstatements == 2 && t->nassumptions == 4);
        CHECK(t->tensors[t->definitions[0].tensor].name.p[0] == 's'); /* before a, which reads it */
        CHECK(t->tensors[0].dist.kind == DIST_DEFINED && t->definitions[0].nvars == 3);
        CHECK(str_is(t->definitions[1].index[0], "i") && t->definitions[1].nindex == 2);
        CHECK(t->tensors[2].role == TENSOR_RAND && t->tensors[2].dtype == DTYPE_F32);
        CHECK(t->tensors[3].dtype == DTYPE_I32 && t->tensors[4].rank == 0);
        CHECK(tensor_is_input(&t->tensors[5]) && tensor_is_output(&t->tensors[5]));
        CHECK(tensor_has_memory(&t->tensors[5]) && !tensor_has_memory(&t->tensors[2]));
        const struct assumption *x = t->assumptions;
        CHECK(x[0].kind == ASSUME_SYMMETRIC && x[0].tensor == 0);
        CHECK(x[1].kind == ASSUME_ZERO && x[1].s.nindex == 2 && x[1].s.body->kind == EXPR_GT);
        CHECK(x[2].kind == ASSUME_COMPARE && x[2].op == EXPR_GE && x[2].s.nindex == 0);
        CHECK(x[3].op == EXPR_LT && x[3].number->kind == EXPR_DIM && x[3].tensor == 5);
    }
    fixture_end(&f);
}

static void show_reads_back(void) {
    static const char *const rows[][2] = {
        {"sum(k) x[i,k]*2 + x[i,j]", "sum(k < M) x[i,k]*2 + x[i,j]"},
        {"(sum(k) x[i,k])*2", "(sum(k < M) x[i,k])*2"},
        {"2*sum(k) x[i,k]*3", "2*(sum(k < M) x[i,k]*3)"},
        {"1/(sum(k) x[i,k]) - -max(k) x[i,k]", "1/(sum(k < M) x[i,k]) - -(max(k < M) x[i,k])"},
        {"x[i,j] - sum(k) (x[i,k] - 1)", "x[i,j] - sum(k < M) (x[i,k] - 1)"},
        {"x[i,j] - (sum(k) x[i,k] - 1)", "x[i,j] - (sum(k < M) x[i,k] - 1)"},
        {"sum(k <= j) x[i,k]", "sum(k <= j) x[i,k]"},
        {"sum(k < j+1) x[i,k]", "sum(k <= j) x[i,k]"},
        {"sum(j <= k < M) sum(q) x[q,k]", "sum(j <= k < M) sum(q < N) x[q,k]"},
        {"mean(k, q < 2 | k > q || b[k]) x[k,q]", "mean(k < N, q < 2 | k > q || b[k]) x[k,q]"},
        {"pad(x[i-1,j], -inf)", "pad(x[i - 1,j], -inf)"},
        {"x[t[i], argmax(k) x[i,k]]", "x[t[i],argmax(k < M) x[i,k]]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        struct buf b;
        char line[256], text[1024];
        buf_init(&b, 1 << 16);
        snprintf(text, sizeof text, HEAD "y[i,j] = %s\n", rows[i][0]);
        snprintf(line, sizeof line, "\n  y[i,j] = %s\n", rows[i][1]);
        if (fixture_text(&f, text))
            task_show(f.in, &b);
        CHECKF(str_find(buf_str(&b), str_view(line)) < b.n, "row %zu: %s", i, b.p);
        fixture_end(&f);
        /* What is shown means the same: it shows as itself. */
        buf_clear(&b);
        snprintf(text, sizeof text, HEAD "y[i,j] = %s\n", rows[i][1]);
        if (fixture_text(&f, text))
            task_show(f.in, &b);
        CHECKF(str_find(buf_str(&b), str_view(line)) < b.n, "row %zu: %s", i, b.p);
        fixture_end(&f);
        buf_release(&b);
    }
}

static void declarations_are_shown(void) {
    struct fixture f;
    struct buf b;
    buf_init(&b, 1 << 16);
    if (fixture_text(&f, "task d \"D\"\ndim N = 4\nrand r[N,N] ~ uniform(0,1)\n"
                         "in a[N,N] : f32 = (r[i,j] + r[j,i])/2\ninout c[N] : f32 ~ zeros\n"
                         "out y[N,2] : f32\nassume symmetric(a)\nassume a[i,j] == 0 | i > 2*j\n"
                         "assume c[i] >= -1\ny[i,0] = c[i]\ny[i,1] = sum(j) a[i,j]\nc[i] = 2*c[i]\n"
                         "let z[i,j] = a[i,j]\n"))
        task_show(f.in, &b);
    CHECKF(str_eq(buf_str(&b),
                  S("d: D\n  N = 4\n  rand  r[4,4] : f32 ~ uniform(0, 1)  (64 B)\n"
                    "  in    a[4,4] : f32 = (r[i,j] + r[j,i])/2  (64 B)\n"
                    "  inout c[4] : f32 ~ zeros  (16 B)\n  out   y[4,2] : f32  (32 B)\n"
                    "  assume symmetric(a)\n  assume a[i,j] == 0 | i > 2*j\n"
                    "  assume c[i] >= -1\n  let z[i < N, j < N] = a[i,j]\n  y[i,0] = c[i]\n"
                    "  y[i,1] = sum(j < N) a[i,j]\n  c[i] = 2*c[i]\n  accuracy fp32\n")),
           "%s", b.p);
    buf_release(&b);
    fixture_end(&f);
}

/* prefix, then `unit` n times, then `middle`, then `close` n times. */
static bool nests(int n, const char *unit, const char *middle, const char *close, struct err *err) {
    struct arena *a = arena_new((size_t)64 << 20);
    struct buf b;
    struct task *t;
    buf_init(&b, 1 << 20);
    buf_puts(&b, S(HEAD "y[i,j] = "));
    for (int i = 0; i < n; i++)
        buf_puts(&b, str_view(unit));
    buf_puts(&b, str_view(middle));
    for (int i = 0; i < n; i++)
        buf_puts(&b, str_view(close));
    bool ok = task_parse(S("t.task"), buf_str(&b), a, &t, err);
    buf_release(&b);
    arena_free(a);
    return ok;
}

static void depth_is_limited(void) {
    static const struct {
        const char *unit, *middle, *close;
        int fits;
    } shapes[] = {
        {"pad(x[0,0], ", "1", ")", 90},
        {"x[t[", "0", "],0]", 0},
        {"t[", "0", "]", 90},
        {"sum((", "1", ") <= k < 3) k", 0},
        {"sum(k | 1 < ", "2", ") 1", 0},
        {"max(k < 3) 1 + ", "1", "", 30},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct err err = {0};
        CHECKF(!shapes[i].fits ||
                   nests(shapes[i].fits, shapes[i].unit, shapes[i].middle, shapes[i].close, &err),
               "shape %zu: %s", i, err.text);
        CHECKF(!nests(20000, shapes[i].unit, shapes[i].middle, shapes[i].close, &err) &&
                   (strstr(err.text, "nests more than 200 levels") || strstr(err.text, "variable")),
               "shape %zu: %s", i, err.text);
    }
}

static const struct tap_case cases[] = {
    {"malformed files are explained", malformed_files_are_explained},
    {"a reduction takes the product that follows", reductions_take_the_product},
    {"variables are numbered", variables_are_numbered},
    {"kinds follow", kinds_follow},
    {"names of reduction variables serve again", names_serve_again},
    {"definitions in pieces, places from data", pieces_and_places},
    {"inputs are defined", inputs_are_defined},
    {"show writes reductions anew", show_reads_back},
    {"show writes declarations anew", declarations_are_shown},
    {"depth is limited", depth_is_limited},
};
TAP_CASES(cases)
