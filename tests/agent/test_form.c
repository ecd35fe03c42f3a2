/* Normal form: what it looks like, and that it computes what the task does. */
#include "../spec/fixture.h"

#include "agent/expert/form/form.h"
#include "base/file.h"
#include "base/rng.h"
#include "spec/cost.h"
#include <string.h>

/* ---- looks ---- */

struct look {
    const char *name, *text;
    bool operands;
    const char *want[6]; /* lines of the form's statements, in order */
};

static const char *const head = "task t \"T\"\ndim N = 8, M = 12, K = 5\nin x[N,M] : f32 ~ ones\n"
                                "in w[M,K] : f32 ~ ones\nin p[N] : i32 ~ randint(0, M)\n";

static const struct look looks[] = {
    {"a map stays", "out y[N,M] : f32\ny[i,j] = x[i,j] + 1\n", false, {"y[i,j] = x[i,j] + 1"}},
    {"lets are written out where they are read",
     "out y[N,M] : f32\nlet t[i,j] = 2*x[i,j]\nlet u[j,i] = t[i,j] - 1\ny[i,j] = u[j,i] * t[i,0]\n",
     false,
     {"y[i,j] = (2*x[i,j] - 1) * (2*x[i,0])"}},
    {"a reduction that is all of the body stays",
     "out y[N] : f32\ny[i] = sum(j) x[i,j]\n",
     false,
     {"y[i] = sum(j < M) x[i,j]"}},
    {"one inside an expression is taken out",
     "out y[N] : f32\ny[i] = sqrt(sum(j) x[i,j]) + 1\n",
     false,
     {"let y_sum[i < N]: f32 = sum(j < M) x[i,j]", "y[i] = sqrt(y_sum[i]) + 1"}},
    {"one of fewer variables too",
     "out y[N,M] : f32\ny[i,j] = x[i,j] / sum(k) x[i,k]\n",
     false,
     {"let y_sum[i < N]: f32 = sum(k < M) x[i,k]", "y[i,j] = x[i,j] / y_sum[i]"}},
    {"equal ones come once",
     "out y[N] : f32\ny[i] = (sum(j) x[i,j]) * (sum(k) x[i,k])\n",
     false,
     {"let y_sum[i < N]: f32 = sum(j < M) x[i,j]", "y[i] = y_sum[i] * y_sum[i]"}},
    {"softmax",
     "out y[N,M] : f32\nlet m[i] = max(j) x[i,j]\nlet s[i] = sum(j) exp(x[i,j] - m[i])\n"
     "y[i,j] = exp(x[i,j] - m[i]) / s[i]\n",
     false,
     {"let m[i < N]: f32 = max(j < M) x[i,j]", "let s[i < N]: f32 = sum(j < M) exp(x[i,j] - m[i])",
      "y[i,j] = exp(x[i,j] - m[i]) / s[i]"}},
    {"a reduction in a reduction",
     "out y : f32\ny = mean(i) (1 + sum(j) x[i,j])\n",
     false,
     {"let y_sum[i < N]: f32 = sum(j < M) x[i,j]", "y = mean(i < N) (1 + y_sum[i])"}},
    {"not where a condition guards it",
     "out y[N] : f32\ny[i] = if(i > 0, sum(j) x[i-1,j], 0)\n",
     false,
     {"y[i] = if(i > 0, sum(j < M) x[i-1,j], 0)"}},
    {"a padded let stays",
     "out y[N] : f32\nlet t[i] = x[i,0] + 1\ny[i] = pad(t[i-1], 0)\n",
     false,
     {"let t[i < N]: f32 = x[i,0] + 1", "y[i] = pad(t[i-1], 0)"}},
    {"integers stay integers",
     "out y[N] : f32\nlet a[i] : i32 = argmax(j) x[i,j]\ny[i] = x[i,a[i]]\n",
     false,
     {"let a[i < N]: i32 = argmax(j < M) x[i,j]", "y[i] = x[i,a[i]]"}},
    {"operands inside",
     "out y[N,K] : f32\ny[i,k] = sum(j) exp(x[i,j]) * w[j,k]\n",
     false,
     {"y[i,k] = sum(j < M) exp(x[i,j]) * w[j,k]"}},
    {"operands taken out",
     "out y[N,K] : f32\ny[i,k] = sum(j) exp(x[i,j]) * w[j,k]\n",
     true,
     {"let y_operand[i < N, j < M]: f32 = exp(x[i,j])",
      "y[i,k] = sum(j < M) y_operand[i,j] * w[j,k]"}},
    {"of a range that depends on an index",
     "out y[N,K] : f32\ny[i,k] = sum(j <= i) exp(x[i,j]) * w[j,k]\n",
     true,
     {"let y_operand[i < N, j < M]: f32 = exp(x[i,j])",
      "y[i,k] = sum(j <= i) y_operand[i,j] * w[j,k]"}},
    {"a dot product of rows has no operands",
     "out y[N] : f32\ny[i] = sum(j) exp(x[i,j]) * w[j,0]\n",
     true,
     {"y[i] = sum(j < M) exp(x[i,j]) * w[j,0]"}},
    {"integers have the smallest type that holds them",
     "out y[N] : f32\ny[i] = 1 + 0.5*sum(j) if(x[i,j] > 0, 100, -1)\n",
     false,
     {"let y_sum[i < N]: i32 = sum(j < M) if(x[i,j] > 0, 100, -1)", "y[i] = 1 + 0.5*y_sum[i]"}},
    {"… and those of a byte a byte",
     "out y[N] : f32\ny[i] = 0.5*sum(j) if(x[i,j] > 0, 1, 0)\n",
     false,
     {"let y_sum[i < N]: i8 = sum(j < M) if(x[i,j] > 0, 1, 0)", "y[i] = 0.5*y_sum[i]"}},
    {"an integer factor has the format of its class",
     "out y[M,K] : f32\ny[i,k] = sum(j) x[j,i] * bit_and(p[j] + k, 15)\naccuracy bf16\n",
     true,
     {"let y_operand[k < K, j < N]: bf16 = bit_and(p[j] + k, 15)",
      "y[i,k] = sum(j < N) x[j,i] * y_operand[k,j]"}},
    {"a guard is a range",
     "out y[N] : f32\ny[i] = sum(j | j <= i) x[i,j]\n",
     false,
     {"y[i] = sum(j < minimum(M, i + 1)) x[i,j]"}},
    {"a bound that follows from a size is left out",
     "out y[N,N] : f32\ny[i,l] = sum(j < N | i >= j) x[j,l]\n",
     false,
     {"y[i,l] = sum(j <= i) x[j,l]"}},
    {"what is no bound stays a guard",
     "out y[N] : f32\ny[i] = max(j | !(j > p[i] || x[i,j] < 0)) x[i,j]\n",
     false,
     {"y[i] = max(j < M | j < p[i] + 1 && !(x[i,j] < 0)) x[i,j]"}},
    {"multiples are divided",
     "out y[N] : f32\ny[i] = sum(j | 2*j < i && 3*j >= i - 4) x[i,j]\n",
     false,
     {"y[i] = sum(maximum(0, (i-2)//3) <= j < minimum(M, (i+1)//2)) x[i,j]"}},
    {"places in a window keep a range of a size",
     "out y[N] : f32\ny[i] = sum(maximum(0, 1 - i) <= r < minimum(3, N + 1 - i)) pad(x[i+r-1,0], "
     "0)\n",
     false,
     {"y[i] = sum(r < 3 | r >= 1 - i && r < N - i + 1) pad(x[i+r-1,0], 0)"}},
    {"a small range that moves with an index is a window",
     "out y[N] : f32\ny[i] = max(i - 2 < j <= i | j >= 0) x[j,0]\n",
     false,
     {"y[i] = max(j < 2 | i + j - 1 >= 0) x[i+j-1,0]"}},
    {"a window is counted from 0 on",
     "out y[N] : f32\ny[i] = sum(-1 <= r <= 1, -M < s < M | i + r < N) pad(x[i+r,s], 0)*w[r+1,0]\n",
     false,
     {"y[i] = sum(r < 3, -M + 1 <= s < M | i + (r-1) < N) pad(x[i+r-1,s], 0) * w[r,0]"}},
    {"a transposed convolution by phases is one over taps",
     "in v[M,K,6] : f32 ~ ones\nin z[M,N] : f32 ~ ones\nout y[K,2*N] : f32\n"
     "y[l,i] = sum(j, r < 3) pad(z[j,(i+1)//2-r], 0)*v[j,l,(i+1)%2+2*r]\n",
     true,
     {"y[l,i] = sum(j < M, r < 6 | (i + 1 - r) % 2 == 0) pad(z[j,(i+1-r)//2], 0) * v[j,l,r]"}},
    {"a causal filter runs forward, with a pad for what is before the first",
     "in h[K] : f32 ~ ones\nout y[N] : f32\ny[i] = sum(k | k <= i) h[k]*x[i-k,0]\n",
     true,
     {"y[i] = sum(k < K) h[K-k-1] * pad(x[i+k-K+1,0], 0)"}},
    {"a sum over all that came before has no pad",
     "out y[N] : f32\ny[i] = sum(k | k <= i) p[k]*x[k,0]\n",
     true,
     {"y[i] = sum(k <= i) p[k] * x[k,0]"}},
    {"but not where its place is the result",
     "out y[N] : f32\ny[i] = argmax(-1 <= r <= 1) pad(x[i+r,0], 0)\n",
     false,
     {"y[i] = argmax(-1 <= r <= 1) pad(x[i+r,0], 0)"}},
    {"a sum over its number of terms is a mean",
     "out y[N] : f32\ny[i] = (sum(j) x[i,j])/M\n",
     false,
     {"y[i] = mean(j < M) x[i,j]"}},
    {"a band of a matrix is no window",
     "out y[N] : f32\ny[i] = max(i - 2 < j <= i | j >= 0 && j < M) x[i,j]\n",
     false,
     {"y[i] = max(maximum(0, i-1) <= j < minimum(M, i + 1)) x[i,j]"}},
    {"the same reduction is done once, under whatever name",
     "out y[N] : f32\nlet a[i] = max(j) x[i,j]\nlet b[i] = max(l) x[i,l]\n"
     "y[i] = a[i] + b[i] - (max(k) x[i,k])\n",
     false,
     {"let a[i < N]: f32 = max(j < M) x[i,j]", "y[i] = a[i] + a[i] - a[i]"}},
    {"guards of a product that keep an index inside are a pad",
     "out y[N,N] : f32\ny[i,l] = sum(j, r < 3 | i + r >= 1 && N > i + r - 1) x[i+r-1,j]*x[l,j]\n",
     true,
     {"y[i,l] = sum(j < M, r < 3) pad(x[i+r-1,j], 0) * x[l,j]"}},
    {"so are conditions of its factors, and what is no place stays a guard",
     "out y[N,N] : f32\n"
     "y[i,l] = sum(j, r < 3) if(!(i+r-1 < 0) && i+r-1 <= N-1 && p[i] > 0, x[i+r-1,j], 0)*x[l,j]\n",
     true,
     {"y[i,l] = sum(j < M, r < 3 | p[i] > 0) pad(x[i+r-1,j], 0) * x[l,j]"}},
    {"a product of two sides that are computed",
     "out y[N,N] : f32\ny[i,l] = sum(j) exp(x[i,j])*x[i,j]*(x[l,j]*x[0,j])\n",
     true,
     {"let y_operand[i < N, j < M]: f32 = exp(x[i,j]) * x[i,j]",
      "let y_operand2[l < N, j < M]: f32 = x[l,j] * x[0,j]",
      "y[i,l] = sum(j < M) y_operand[i,j] * y_operand2[l,j]"}},
    {"one of several variables keeps a range of a size",
     "out y[N] : f32\ny[i] = sum(k, j <= i | j < M) x[k,j]\n",
     false,
     {"y[i] = sum(k < N, j < M | j < M && j < i + 1) x[k,j]"}},
};

/* Each row says the same several times: the forms are equal. */
static const char *const rephrased[][6] = {
    {"max(j | j <= i && j > i - 3) x[i,j]", "max(j | !(j > i) && i < 3 + j) x[i,j]",
     "max(j <= i | j > i - 3 && j < M) x[i,j]", "max(j | i - j < 3 && 0 <= i - j) x[i,j]",
     "max(maximum(0, i - 2) <= j < minimum(M, i + 1)) x[i,j]"},
    {"sum(j | j < p[i]) x[i,j]", "sum(j | p[i] > j && j >= 0) x[i,j]",
     "sum(j | !(j >= p[i])) x[i,j]", "sum(j | 0 < p[i] - j) x[i,j]"},
    {"prod(j | j >= i) x[i,j]", "prod(i <= j < M) x[i,j]", "prod(j | -j <= -i) x[i,j]",
     "prod(j | !(i - 1 >= j)) x[i,j]"},
};

static str form_of(struct fixture *f, const char *body) {
    struct form form;
    struct buf b;
    char text[2048];
    snprintf(text, sizeof text, "%sout y[N] : f32\ny[i] = %s\n", head, body);
    if (!fixture_text(f, text))
        return S("");
    CHECKF(form_make(f->in, false, f->a, &form, &f->err), "%s: %s", body, f->err.text);
    buf_init(&b, 1u << 16);
    task_show(form.inst, &b);
    str all = arena_printf(f->a, "%.*s", STR_ARG(buf_str(&b)));
    buf_release(&b);
    return str_from(all, str_find(all, S("\ny[")));
}

static void test_rephrased(void) {
    for (size_t i = 0; i < sizeof rephrased / sizeof *rephrased; i++) {
        struct fixture one, other;
        str form = form_of(&one, rephrased[i][0]);
        for (size_t k = 1; k < 6 && rephrased[i][k]; k++) {
            str again = form_of(&other, rephrased[i][k]);
            CHECKF(str_eq(form, again), "%s and %s:%.*s%.*s", rephrased[i][0], rephrased[i][k],
                   STR_ARG(form), STR_ARG(again));
            fixture_end(&other);
        }
        fixture_end(&one);
    }
}

static str squeezed(struct arena *a, str s) {
    char *to = arena_array(a, char, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != ' ')
            to[n++] = s.p[i];
    return (str){to, n};
}

static void check_look(struct fixture *f, const struct look *l) {
    struct form form;
    struct buf b;
    CHECKF(form_make(f->in, l->operands, f->a, &form, &f->err), "%s: %s", l->name, f->err.text);
    buf_init(&b, 1u << 16);
    task_show(form.inst, &b);
    str shown = squeezed(f->a, buf_str(&b));
    size_t n = 0;
    while (n < 6 && l->want[n]) {
        str want = squeezed(f->a, str_view(l->want[n++]));
        CHECKF(str_find(shown, want) < shown.n, "%s: no '%s' in\n%.*s", l->name, l->want[n - 1],
               STR_ARG(buf_str(&b)));
    }
    CHECKF(form.task->nstatements == n, "%s: %zu statements\n%.*s", l->name, form.task->nstatements,
           STR_ARG(buf_str(&b)));
    buf_release(&b);
}

static void test_looks(void) {
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        struct fixture f;
        char text[2048];
        snprintf(text, sizeof text, "%s%s", head, looks[i].text);
        if (fixture_text(&f, text))
            check_look(&f, &looks[i]);
        fixture_end(&f);
    }
}

/* ---- parts ---- */

static void test_parts(void) {
    struct fixture f;
    char text[2048];
    snprintf(text, sizeof text, "%s%s", head, looks[6].text); /* softmax */
    CHECK(fixture_text(&f, text));
    struct form form;
    CHECK(form_make(f.in, false, f.a, &form, &f.err));
    size_t m = (size_t)tensor_find(f.task, S("m")), s = (size_t)tensor_find(f.task, S("s")),
           x = (size_t)tensor_find(f.task, S("x")), y = (size_t)tensor_find(f.task, S("y")),
           w = (size_t)tensor_find(f.task, S("w"));
    const struct tensor *t = form_part(&form, (bool[]){true, true, false}, f.a)->task->tensors;
    CHECK(t[m].role == TENSOR_OUT && t[s].role == TENSOR_OUT && t[x].role == TENSOR_IN);
    CHECK(t[y].role == TENSOR_RAND && t[w].role == TENSOR_RAND);
    t = form_part(&form, (bool[]){false, false, true}, f.a)->task->tensors;
    CHECK(t[m].role == TENSOR_IN && t[s].role == TENSOR_IN && t[y].role == TENSOR_OUT);
    const struct inst *all = form_part(&form, (bool[]){true, true, true}, f.a);
    CHECK(all->task->tensors[m].role == TENSOR_LET && all->task->nstatements == 3);
    CHECK(all->task->tensors[m].dtype == DTYPE_F32);
    fixture_end(&f);
}

/* ---- values ---- */

/* The form's results, rounded to the outputs' types, judged by the task's own reference. */
static void check_values(struct fixture *f, bool operands, const char *what) {
    struct form form;
    struct reference *refs;
    size_t n;
    CHECKF(form_make(f->in, operands, f->a, &form, &f->err), "%s: %s", what, f->err.text);
    CHECKF(reference_eval(form.inst, (const void *const *)f->inputs, 2, &refs, &n, NULL, &f->err),
           "%s: %s", what, f->err.text);
    CHECK(n == f->nrefs);
    for (size_t i = 0; i < n; i++) {
        struct comparison c;
        enum dtype t = f->task->tensors[refs[i].tensor].dtype;
        void *got = mem_alloc(f->in->tensors[refs[i].tensor].bytes);
        data_store(t, refs[i].value, refs[i].count, got);
        reference_compare(f->in, &f->refs[i], got, 2, &c);
        CHECKF(c.pass, "%s: worst %g rms %g", what, c.worst, c.rms);
        mem_free(got);
    }
    reference_release(refs, n);
}

static size_t check_task(struct fixture *f, const char *path) {
    size_t done = 0;
    if (!task_load(path, f->a, &f->task, &f->err)) {
        CHECKF(false, "%s", f->err.text);
        return 0;
    }
    for (size_t c = 0; c < f->task->nchecks; c++) {
        struct cost cost;
        if (!task_bind_check(f->task, c, f->a, &f->in, &f->err))
            continue;
        cost_of(f->in, &cost);
        if (cost.flops > 3e6 || !fixture_data(f, DATA_SIGNED, 5))
            continue;
        const char *what = arena_printf(f->a, "%.*s check %zu", STR_ARG(f->task->name), c).p;
        check_values(f, false, what);
        check_values(f, true, what);
        done++;
    }
    return done;
}

static void test_values(void) {
    static const char *const folders[] = {"smoke", "layers", "kernelbench/level1"};
    const char *root = getenv("SOURCE_ROOT");
    size_t done = 0;
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        struct fixture f = {.a = arena_new((size_t)512 << 20)};
        const char *path = arena_printf(f.a, "%s/tasks/%s", root ? root : ".", folders[k]).p;
        str *names;
        size_t n = 0;
        for (int i = 0; i < DATA_COUNT; i++)
            f.scale.factor[i] = 1;
        CHECKF(dir_list(path, f.a, &names, &n, &f.err), "%s", f.err.text);
        for (size_t i = 0; i < n; i++)
            if (str_ends(names[i], S(".task")))
                done += check_task(&f, arena_printf(f.a, "%s/%.*s", path, STR_ARG(names[i])).p);
        fixture_end(&f);
    }
    CHECKF(done > 250, "%zu evaluations", done);
}

/* ---- guards drawn at random ---- */

static const char *pick(struct rng r, uint64_t *at, const char *const *from, size_t n) {
    return from[rng_below(r, (*at)++, n)];
}
#define PICK(list) pick(r, &at, list, sizeof list / sizeof *list)

/* A reduction whose guard is of comparisons that may bound its variable, in any form. */
static str random_guarded(struct arena *a, struct rng r) {
    static const char *const ops[] = {"sum", "prod", "max", "min", "mean", "argmax", "argmin"};
    static const char *const ranges[] = {
        "j", "j", "j <= i", "i <= j < M", "j < i + 3", "2 <= j < M", "i - 2 < j <= i + 1"};
    static const char *const sides[] = {
        "j",     "j",       "2*j",   "j + 1",      "j - i",     "3*j - 2*i", "-j",
        "i - j", "i",       "i - 3", "K",          "p[i]",      "2",         "M - 1 - i",
        "i//2",  "2*i - K", "N - K", "p[i] - 2*i", "i*(K - 4)", "0",         "minimum(i, K)"};
    static const char *const compare[] = {"<", "<=", ">", ">=", "==", "!=", "<", ">="};
    static const char *const bodies[] = {"x[i,j]", "x[i,j]*w[j,2]", "w[j,1]", "x[i,j]*w[M-1-j,0]"};
    uint64_t at = 0;
    str guard = S("");
    for (uint64_t n = 1 + rng_below(r, at++, 3); n > 0; n--) {
        const char *no = rng_below(r, at++, 4) == 0 ? "!" : "";
        const char *and = guard.n == 0 ? "" : rng_below(r, at++, 4) ? " && " : " || ";
        const char *x = PICK(sides), *c = PICK(compare), *y = PICK(sides);
        guard = arena_printf(a, "%.*s%s%s(%s %s %s)", STR_ARG(guard), and, no, x, c, y);
    }
    const char *op = PICK(ops), *range = PICK(ranges), *body = PICK(bodies);
    bool leaves = strcmp(range, "i - 2 < j <= i + 1") == 0;
    return arena_printf(a, "%s(%s | %s(%.*s)) %s", op, range, leaves ? "j >= 0 && j < M && " : "",
                        STR_ARG(guard), body);
}

/* The value of a reduction is that of its form. */
static void test_random_guards(void) {
    size_t changed = 0;
    for (uint64_t k = 0; k < 150; k++) {
        struct fixture f;
        char text[2048];
        struct arena *a = arena_new(1u << 20);
        str body = random_guarded(a, rng_stream(k, S("guards")));
        bool place = str_starts(body, S("arg"));
        snprintf(text, sizeof text, "%sout y[N] : %s\ny[i] = %.*s\n", head, place ? "i32" : "f32",
                 STR_ARG(body));
        if (fixture_text(&f, text) && fixture_data(&f, DATA_SIGNED, k)) {
            struct form form;
            check_values(&f, false, body.p);
            CHECK(form_make(f.in, false, f.a, &form, &f.err));
            changed += !expr_same(form.task->statements[0].body, f.task->statements[0].body);
        }
        fixture_end(&f);
        arena_free(a);
    }
    CHECKF(changed > 50, "%zu forms differ from what is written", changed);
}

static const struct tap_case cases[] = {
    {"what the form looks like", test_looks},
    {"what says the same looks the same", test_rephrased},
    {"guards become ranges of the same value", test_random_guards},
    {"parts of it as tasks", test_parts},
    {"it computes what the task does", test_values},
};
TAP_CASES(cases)
