/* Sheets and scopes: names, plan text, parameters, and expressions in a kernel's terms. */
#include "agent/expert/sheet/sheet.h"
#include "tap.h"

static struct arena *mem;
static struct catalogue *catalogue;
static struct err err;

struct fixture {
    struct briefing b;
    struct strategy s;
    struct sheet sh;
    struct step st;
    struct scope k;
};

static bool begin(struct fixture *f, const char *declarations, const char *statement) {
    struct task *t;
    struct inst *in;
    err = (struct err){0};
    str text = arena_printf(mem, "task t \"t\"\n%s%s\n", declarations, statement);
    bool ok = task_parse(S("t.task"), text, mem, &t, &err) && task_bind(t, NULL, 0, mem, &in, &err);
    CHECKF(ok, "%s: %s", statement, err.text);
    if (!ok)
        return false;
    f->b = (struct briefing){.inst = in, .catalogue = catalogue, .gpu = gpu_find(S("h200"))};
    f->s = (struct strategy){0};
    for (size_t i = 0; i < STRATEGY_MAX_DECISIONS; i++)
        f->s.value[i] = STRATEGY_UNSET;
    sheet_init(&f->sh, &f->b, &f->s, NULL, &err);
    f->st = (struct step){.inst = in, .family = "test"};
    scope_init(&f->k, &f->sh, &f->st, "test_kernel");
    f->k.statement = &t->statements[t->nstatements - 1];
    for (size_t i = 0; i < f->k.statement->nvars; i++)
        f->k.var[i] = scope_variable(&f->k, i);
    return true;
}

static bool is(str a, const char *b) {
    return str_is(a, b);
}

#define HEAD                                                                                       \
    "dim N = 64, M = 32, C = 3\n"                                                                  \
    "in x[N,M] : f32 ~ uniform(0,1)\nin h[N] : f16 ~ uniform(0,1)\n"                               \
    "in d[N] : f64 ~ uniform(0,1)\nin n[N] : i32 ~ randint(0,N)\n"                                 \
    "in w[N] : i64 ~ randint(0,N)\nin b[N] : i8 ~ randint(-3,3)\n"                                 \
    "in m[N] : bool ~ bernoulli(0.5)\nin f[C*N] : f32 ~ uniform(0,1)\n"                            \
    "in r[3,N] : f32 ~ uniform(0,1)\n"

struct text_row {
    const char *statement, *text;
};

/* The value of the last statement, over i (and j). */
static const struct text_row values[] = {
    {"out y[N,M] : f32\ny[i,j] = x[i,j]", "x[i * M + j]"},
    {"out y[N] : f32\ny[i] = x[0,0] + x[i,0]", "x[0] + x[i * M]"},
    {"out y[N] : f32\ny[i] = h[i] + d[i]", "__half2float(h[i]) + float(d[i])"},
    {"out y[N,M] : f32\ny[i,j] = pad(x[i-1,j], 0)",
     "((unsigned)(i - 1) < (unsigned)N ? x[(i - 1) * M + j] : 0.0f)"},
    {"out y[N,M] : f32\ny[i,j] = 2*pad(x[i,j+2], -inf)",
     "2.0f * ((unsigned)(j + 2) < (unsigned)M ? x[i * M + (j + 2)] : -INFINITY)"},
    {"out y[N] : f32\ny[i] = pad(r[3,i], 1)", "((unsigned)(3) < 3 ? r[3 * N + i] : 1.0f)"},
    {"out y[N] : f32\ny[i] = if(i > 0, x[i-1,0], 0)", "i > 0 ? x[(i - 1) * M] : 0.0f"},
    {"out y[N] : f32\ny[i] = x[n[i],0] + x[w[i],0]", "x[n[i] * M] + x[(int)w[i] * M]"},
    {"out y[N] : f32\ny[i] = x[(n[i] + i) % N,0]",
     "x[(int)(cp_floormod((long long)n[i] + (long long)i, (long long)N)) * M]"},
    {"out y[N] : i64\ny[i] = n[i]*n[i] + b[i]",
     "(long long)n[i] * (long long)n[i] + (long long)b[i]"},
    {"out y[N] : f32\ny[i] = n[i] * 0.5", "float(n[i]) * 0.5f"},
    {"out y[N] : f32\ny[i] = i // 4 + (i - 3) // 2 + i % N",
     "i / 4 + cp_floordiv(i - 3, 2) + i % N"},
    {"out y[N,M] : i64\ny[i,j] = i*M + j", "(long long)i * (long long)M + (long long)j"},
    {"out y[C,N] : f32\ny[c,i] = f[c*N + i]", "f[c * N + i]"},
    {"out y[N] : bool\ny[i] = !m[i] || n[i] == 3", "!m[i] || n[i] == 3"},
    {"out y[N] : f32\ny[i] = exp(h[i]) / 3", "expf(__half2float(h[i])) / 3.0f"},
};

static void test_values(void) {
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct fixture f;
        if (!begin(&f, HEAD, values[i].statement))
            continue;
        str s = scope_text(&f.k, f.k.statement->body);
        CHECKF(is(s, values[i].text), "%s\n#  is: %.*s\n# not: %s\n# %s", values[i].statement,
               STR_ARG(s), values[i].text, err.text);
        sheet_release(&f.sh);
    }
}

/* Fast forms only where class fp32 accepts them. */
static void test_fast(void) {
    struct fixture f;
    if (!begin(&f, HEAD,
               "out y[N] : f32\ny[i] = exp(d[i])/d[i] + tanh(d[i]) + sin(d[i]) + pow(d[i], 1.5)"))
        return;
    f.sh.fast = true;
    str s = scope_text(&f.k, f.k.statement->body);
    CHECKF(is(s, "cp_quotient(__expf(float(d[i])), float(d[i])) + cp_fast_tanh(float(d[i])) + "
                 "sinf(float(d[i])) + powf(float(d[i]), 1.5f)"),
           "%.*s", STR_ARG(s));
    sheet_release(&f.sh);
}

static void test_held(void) {
    struct fixture f;
    if (!begin(&f, HEAD, "out y[N] : f32\ny[i] = 2 * x[i,0] + x[i,1]"))
        return;
    const struct expr *sum = f.k.statement->body, *first = sum->args[0]->args[1];
    scope_hold(&f.k, first, S("a + 1.0f"));
    CHECK(is(scope_text(&f.k, sum), "2.0f * (a + 1.0f) + x[i * M + 1]"));
    scope_hold(&f.k, first, S("v.x"));
    CHECK(is(scope_text(&f.k, sum), "2.0f * v.x + x[i * M + 1]"));
    scope_hold(&f.k, sum, S("whole"));
    CHECK(is(scope_text(&f.k, sum), "whole"));
    sheet_release(&f.sh);
}

static void test_parameters(void) {
    struct fixture f;
    if (!begin(&f, HEAD, "out y[N,2*M] : f16\ny[i,j] = x[i,j//2] + h[i]"))
        return;
    str value = scope_text(&f.k, f.k.statement->body), to = scope_pointer(&f.k, 9, true);
    struct buf b;
    buf_init(&b, 1024);
    CHECK(is(scope_place_text(&f.k), "i * size + j"));
    CHECK(is(to, "y") && f.sh.half && !f.sh.bfloat);
    str packed = scope_packed(&f.k, 9, VALUE_REAL, value);
    CHECK(is(packed, "__float2half_rn(x[i * M + (j / 2)] + __half2float(h[i]))"));
    str params = scope_params(&f.k), args = scope_args(&f.k);
    CHECKF(is(params, "const float *__restrict__ x, const __half *__restrict__ h, "
                      "__half *__restrict__ y, int M, int size"),
           "%.*s", STR_ARG(params));
    CHECKF(is(args, "x, h, y, M, (2*M)"), "%.*s", STR_ARG(args));
    CHECKF(is(buf_str(&f.sh.require), "// " SCOPE_INT_WHY "\n"
                                      "//! require N*M <= 1073741824\n"
                                      "//! require N*(2*M) <= 1073741824\n"),
           "%s", f.sh.require.p);
    buf_release(&b);
    sheet_release(&f.sh);
}

/* Beyond 2^30 elements indices are long long, and nothing is required. */
static void test_wide(void) {
    struct fixture f;
    if (!begin(&f, "dim N = 2000000000\nin x[N] : i8 ~ randint(0,9)\nout y[N] : i8\n",
               "y[i] = x[N-1-i]"))
        return;
    CHECK(f.k.wide && is(scope_text(&f.k, f.k.statement->body), "x[N - 1 - i]"));
    CHECK(is(scope_params(&f.k), "const signed char *__restrict__ x, long long N"));
    scope_args(&f.k);
    CHECK(f.sh.require.n == 0);
    sheet_release(&f.sh);
}

/* Sums of several sizes need smaller ones. */
static void test_large_multiples(void) {
    struct fixture f;
    if (!begin(&f, HEAD, "out y[N] : f32\ny[i] = i + 5*i"))
        return;
    CHECK(is(scope_text(&f.k, f.k.statement->body), "i + 5 * i"));
    CHECKF(is(buf_str(&f.sh.require), "// " SCOPE_INT_WHY "\n//! require N <= 178956970\n"), "%s",
           f.sh.require.p);
    sheet_release(&f.sh);
}

static void test_names(void) {
    struct fixture f;
    if (!begin(&f, "dim N = 8, double = 2\nin float[N] : f32 ~ uniform(0,1)\nout y[N] : f32\n",
               "y[new] = float[new] * double"))
        return;
    str value = scope_text(&f.k, f.k.statement->body), args = scope_args(&f.k);
    CHECKF(is(value, "the_float[new_at] * float(the_double)"), "%.*s", STR_ARG(value));
    CHECKF(is(args, "float, double"), "%.*s", STR_ARG(args));
    CHECK(is(sheet_name(&f.sh, S("y")), "y_") && is(sheet_name(&f.sh, S("int")), "the_int"));
    str a = scope_name(&f.k, "sum"), b = scope_name(&f.k, "sum");
    CHECK(is(a, "sum") && is(b, "sum2") && is(sheet_name(&f.sh, S("sum")), "sum_"));
    str one = sheet_shared_name(&f.sh, S("width=4"), "kWidth");
    CHECK(is(one, "kWidth") && is(sheet_shared_name(&f.sh, S("width=4"), "kWidth"), "kWidth"));
    CHECK(is(sheet_shared_name(&f.sh, S("width=8"), "kWidth"), "kWidth_"));
    sheet_release(&f.sh);
}

/* Names of the family's templates are the kernel's; what the task calls the same has another. */
static void test_reserved(void) {
    struct fixture f;
    if (!begin(
            &f,
            "dim lane = 8, N = 4\nin element[lane,N] : f32 ~ uniform(0,1)\nout y[lane,N] : f32\n",
            "y[row,i] = element[row,i]"))
        return;
    CHECK(!sheet_is_reserved(&f.sh, S("lane")) && is(scope_variable(&f.k, 0), "row"));
    CHECK(sheet_begin_step(&f.sh, "generic"));
    CHECK(sheet_is_reserved(&f.sh, S("lane")) && sheet_is_reserved(&f.sh, S("element")));
    /* slots, members and the functions of libraries are no names of the kernel */
    CHECK(!sheet_is_reserved(&f.sh, S("block")) && !sheet_is_reserved(&f.sh, S("x")));
    CHECK(!sheet_is_reserved(&f.sh, S("from")));
    str value = scope_text(&f.k, f.k.statement->body);
    CHECKF(is(value, "element_[row * N + i]"), "%.*s", STR_ARG(value));
    str lanes = scope_int(&f.k, f.b.inst->task->tensors[0].extent[0]);
    CHECKF(is(lanes, "the_lane"), "%.*s", STR_ARG(lanes));
    str args = scope_args(&f.k), params = scope_params(&f.k);
    CHECKF(is(args, "element, N, lane"), "%.*s", STR_ARG(args));
    CHECKF(is(params, "const float *__restrict__ element_, int N, int the_lane"), "%.*s",
           STR_ARG(params));
    CHECK(sheet_begin_step(&f.sh, "rows") && is(scope_variable(&f.k, 0), "row_at"));
    CHECK(sheet_begin_step(&f.sh, "recurrence") && is(scope_variable(&f.k, 0), "row"));
    sheet_release(&f.sh);
}

/* Tasks keep the names that they use all the time: templates use others. */
static void test_usual_names(void) {
    static const char *const families[] = {"generic", "pointwise", "rows"};
    static const char *const usual[] = {
        "a",       "b",     "c",      "d",      "e",         "f",   "g",     "h",      "i",
        "j",       "k",     "l",      "m",      "n",         "o",   "p",     "q",      "r",
        "s",       "t",     "u",      "v",      "w",         "x",   "y",     "z",      "A",
        "B",       "C",     "D",      "E",      "F",         "G",   "H",     "K",      "L",
        "M",       "N",     "P",      "Q",      "R",         "S",   "T",     "V",      "W",
        "bias",    "mat",   "beta",   "mask",   "gate",      "w1",  "x2",    "hidden", "gamma",
        "q_scale", "x_sum", "weight", "mean_x", "row_count", "cat", "index", "value",  "block"};
    struct fixture f;
    if (!begin(&f, HEAD, "out y[N] : f32\ny[i] = x[i,0]"))
        return;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        CHECK(sheet_begin_step(&f.sh, families[i]));
        for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
            CHECKF(!sheet_is_reserved(&f.sh, str_view(usual[k])), "%s: %s", families[i], usual[k]);
    }
    sheet_release(&f.sh);
}

/* The name of a product of dimensions, and one that stands in for a name of templates. */
static void test_reserved_products(void) {
    struct fixture f;
    if (!begin(
            &f,
            "dim la = 8, ne = 4, Q = 2\nin x[la*ne,Q] : f32 ~ uniform(0,1)\nout y[Q,la*ne] : f32\n",
            "y[q,i] = x[i,q]"))
        return;
    CHECK(sheet_begin_step(&f.sh, "generic"));
    str size = scope_int(&f.k, f.b.inst->task->tensors[0].extent[0]);
    CHECKF(is(size, "lane_"), "%.*s", STR_ARG(size));
    sheet_release(&f.sh);
}

static void test_texts(void) {
    struct fixture f;
    if (!begin(&f, HEAD, "out y[N,M] : f32\ny[i,j] = x[i,j]"))
        return;
    CHECK(is(TEXT(&f.sh, "$ * ($ % 4)$", S("a"), S("$b"), S("")), "a * ($b % 4)"));
    CHECK(is(sheet_join(&f.sh, S("a"), ", ", S("b")), "a, b"));
    CHECK(is(sheet_join(&f.sh, S(""), ", ", S("b")), "b"));
    CHECK(is(sheet_join(&f.sh, S("a"), ", ", S("")), "a"));
    uint32_t all = scope_variables(&f.k);
    CHECK(all == 3 && is(scope_plan_elements(&f.k, all), "N*M"));
    CHECK(is(scope_plan_elements(&f.k, 2), "M") && is(scope_plan_elements(&f.k, 0), "1"));
    CHECK(is(scope_coordinates(&f.k, S("e"), all, all),
             "const int i = e / M;\nconst int j = e % M;"));
    CHECK(is(scope_coordinates(&f.k, S("e"), all, 2), "const int j = e % M;"));
    CHECK(is(scope_coordinates(&f.k, S("e"), 2, all), "const int j = e;"));
    CHECK(is(scope_place_text(&f.k), "i * M + j"));
    f.k.own_param = S("void *parts");
    f.k.own_arg = S("parts");
    scope_pointer(&f.k, 9, true);
    scope_launch(&f.k, S("N*2"), S("64, cluster=2"));
    CHECKF(
        is(buf_str(&f.sh.steps), "//! launch test_kernel<<<N*2, 64, cluster=2>>>(parts, y, M)\n"),
        "%s", f.sh.steps.p);
    CHECK(is(scope_params(&f.k), "void *parts, float *__restrict__ y, int M"));
    sheet_release(&f.sh);
}

/* A file has the functions of libraries that it calls, those that these call, and no others. */
static void test_libraries(void) {
    static const struct {
        const char *text, *has[3], *lacks[3];
    } rows[] = {
        {"x = 1;\n", {NULL}, {"cp_pack", "cp_merge", "cp_word"}},
        {"cp_store(p, v);\n", {"void cp_store(T *p", "struct alignas"}, {"cp_load(", "cp_edge"}},
        {"a = cp_load_edge<4>(p, 0, n);\n",
         {"cp_load_edge(const T", "cp_load(const T *p)", "struct cp_word"},
         {"cp_store", "cp_merge"}},
        {"p = cp_merge_block<64>(p); // not cp_merge_trees\n",
         {"P cp_merge_block(P part)", "P cp_merge_lanes(P part)"},
         {"P cp_merge_tree(", "cp_merge_cluster", "cp_pack"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        struct buf b;
        if (!begin(&f, HEAD, "out y[N] : f32\ny[i] = x[i,0]"))
            return;
        buf_init(&b, 1u << 16);
        buf_puts(&f.sh.kernels, str_view(rows[i].text));
        CHECKF(sheet_finish(&f.sh, &b), "%s", err.text);
        str text = buf_str(&b);
        for (size_t k = 0; k < 3; k++) {
            str has = str_view(rows[i].has[k]), lacks = str_view(rows[i].lacks[k]);
            CHECKF(!has.n || str_find(text, has) < text.n, "row %zu: no %s", i, rows[i].has[k]);
            CHECKF(!lacks.n || str_find(text, lacks) == text.n, "row %zu: %s", i, rows[i].lacks[k]);
        }
        buf_release(&b);
        sheet_release(&f.sh);
    }
}

static void test_workspaces(void) {
    struct fixture f;
    if (!begin(&f, HEAD,
               "out y[N] : f32\nlet s : bf16 = x[0,0]\nlet t[i] = x[i,0]*s\n"
               "y[i] = t[i] + s"))
        return;
    str value = scope_text(&f.k, f.k.statement->body);
    CHECKF(is(value, "t_kept[i] + __bfloat162float(s_kept[0])"), "%.*s", STR_ARG(value));
    CHECKF(is(buf_str(&f.sh.memory), "//! workspace t_kept[N] : f32\n"
                                     "//! workspace s_kept[1] : bf16\n"),
           "%s", f.sh.memory.p);
    sheet_release(&f.sh);
}

static void test_folds(void) {
    struct fixture f;
    if (!begin(&f, HEAD, "out y[N] : f32\ny[i] = x[i,0]"))
        return;
    CHECK(strcmp(fold_identity(REDUCTION_MIN, true), "INFINITY") == 0);
    CHECK(strcmp(fold_identity(REDUCTION_MIN, false), "LLONG_MAX") == 0);
    CHECK(is(fold_combine(&f.sh, REDUCTION_MEAN, S("s"), S("t")), "s + t"));
    CHECK(f.sh.helpers == 0);
    CHECK(is(fold_combine(&f.sh, REDUCTION_MAX, S("s"), S("t")), "cp_maximum(s, t)"));
    CHECK(f.sh.helpers != 0);
    sheet_release(&f.sh);
}

/* The first failure stays, and nothing is written after it. */
static void test_failures(void) {
    struct fixture f;
    if (!begin(&f, HEAD, "out y[N] : f32\ny[i] = sum(j) x[i,j]"))
        return;
    CHECK(scope_text(&f.k, f.k.statement->body).n == 0);
    CHECK(sheet_failed(&f.sh) && strstr(err.text, "a reduction is not an expression"));
    str s = scope_text(&f.k, f.k.statement->body->args[0]);
    struct buf b;
    buf_init(&b, 1u << 16);
    CHECK(s.n == 0 && !sheet_finish(&f.sh, &b) && strstr(err.text, "a reduction is not"));
    buf_release(&b);
    sheet_release(&f.sh);
    if (!begin(&f, HEAD, "out y[N] : f32\ny[i] = x[i,0]"))
        return;
    f.k.var[0] = S("");
    CHECK(scope_text(&f.k, f.k.statement->body).n == 0 && strstr(err.text, "has no value here"));
    sheet_release(&f.sh);
}

static const struct tap_case cases[] = {
    {"values", test_values},
    {"fast forms", test_fast},
    {"values in registers", test_held},
    {"parameters, arguments and what they require", test_parameters},
    {"indices beyond int", test_wide},
    {"large multiples of sizes", test_large_multiples},
    {"names", test_names},
    {"names of templates", test_reserved},
    {"usual names of tasks", test_usual_names},
    {"names of products of dimensions", test_reserved_products},
    {"texts, coordinates, launches", test_texts},
    {"functions of libraries", test_libraries},
    {"lets in memory", test_workspaces},
    {"folds", test_folds},
    {"failures", test_failures},
};

int main(void) {
    mem = arena_new((size_t)1 << 30);
    if (!catalogue_load(NULL, mem, &catalogue, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return rc;
}
