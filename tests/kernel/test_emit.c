/* Expressions of a task as CUDA text. */
#include "tap.h"

#include "fixture.h"
#include "kernel/emit.h"

static struct arena *arena;

#define HEAD                                                                                       \
    "task e \"e\"\n"                                                                               \
    "dim N = 64\n"                                                                                 \
    "in x[N] : f32 ~ uniform(1,2)\n"                                                               \
    "in z[N] : f32 ~ uniform(1,2)\n"                                                               \
    "out y[N] : f32\n"                                                                             \
    "y[i] = "

static void read_name(void *ctx, const struct expr *e, struct buf *out) {
    const struct task *t = ctx;
    buf_printf(out, "%.*s[i]", STR_ARG(t->tensors[e->ref].name));
}

static void index_name(void *ctx, size_t variable, struct buf *out) {
    (void)ctx;
    buf_putc(out, (char)('i' + variable));
}

static void dim_name(void *ctx, size_t dimension, struct buf *out) {
    const struct task *t = ctx;
    buf_puts(out, t->dims[dimension].name);
}

static str emit(const char *expression, str *helpers) {
    char text[2048];
    struct err err = {0};
    snprintf(text, sizeof text, HEAD "%s\n", expression);
    const struct task *t = fixture_task(text, arena);
    const struct expr *e = t->statements[0].body;
    uint64_t called = 0;
    struct emit_names names = {.ctx = (void *)t,
                               .read = read_name,
                               .index = index_name,
                               .dim = dim_name,
                               .helpers = &called};
    struct buf out, h;
    buf_init(&out, 1u << 16);
    buf_init(&h, 1u << 16);
    CHECKF(emit_expr(t, e, &names, &out, &err), "%s: %s", expression, err.text);
    emit_helper_texts(called, &h);
    str s = arena_str(arena, buf_str(&out));
    *helpers = arena_str(arena, buf_str(&h));
    buf_release(&out);
    buf_release(&h);
    return s;
}

static void texts(void) {
    static const struct {
        const char *expression, *text;
    } rows[] = {
        {"x[i]", "x[i]"},
        {"x[i] + 1", "x[i] + 1.0f"},
        {"x[i] * 2 + z[i]", "x[i] * 2.0f + z[i]"},
        {"(x[i] + 2) * z[i]", "(x[i] + 2.0f) * z[i]"},
        {"x[i] - (z[i] - 1)", "x[i] - (z[i] - 1.0f)"},
        {"x[i] + (z[i] + 1)", "x[i] + (z[i] + 1.0f)"},
        {"x[i] / (z[i] * 3)", "x[i] / (z[i] * 3.0f)"},
        {"x[i] / z[i] * 3", "x[i] / z[i] * 3.0f"},
        {"-x[i]", "-x[i]"},
        {"-(x[i] + 1)", "-(x[i] + 1.0f)"},
        {"-(-x[i])", "-(-x[i])"},
        {"x[i] * -2", "x[i] * (-2.0f)"},
        {"0.7071067811865476 * x[i]", "0.70710677f * x[i]"},
        {"0.1 * x[i]", "0.1f * x[i]"},
        {"1e-5 + x[i]", "1e-05f + x[i]"},
        {"16777217 * x[i]", "16777216.0f * x[i]"},
        {"1e30 * x[i]", "1e+30f * x[i]"},
        {"maximum(x[i], 0)", "cp_maximum(x[i], 0.0f)"},
        {"minimum(x[i], z[i] + 1)", "cp_minimum(x[i], z[i] + 1.0f)"},
        {"clamp(x[i], 0, 6)", "cp_minimum(cp_maximum(x[i], 0.0f), 6.0f)"},
        {"exp(x[i]) + log(z[i])", "expf(x[i]) + logf(z[i])"},
        {"sqrt(x[i]) * rsqrt(z[i])", "sqrtf(x[i]) * rsqrtf(z[i])"},
        {"tanh(x[i]) + erf(z[i])", "tanhf(x[i]) + erff(z[i])"},
        {"sin(x[i]) + cos(z[i])", "sinf(x[i]) + cosf(z[i])"},
        {"abs(x[i]) + floor(z[i])", "fabsf(x[i]) + floorf(z[i])"},
        {"ceil(x[i]) - round(z[i])", "ceilf(x[i]) - rintf(z[i])"},
        {"expm1(x[i]) * log1p(z[i])", "expm1f(x[i]) * log1pf(z[i])"},
        {"sign(x[i]) + sign(2)", "cp_sign(x[i]) + cp_sign(2.0f)"},
        {"x[i] * sigmoid(x[i])", "x[i] * cp_sigmoid(x[i])"},
        {"pow(x[i], 2)", "cp_square(x[i])"},
        {"pow(x[i], 3)", "cp_cube(x[i])"},
        {"pow(x[i] + 1, 4)", "cp_square(cp_square(x[i] + 1.0f))"},
        {"pow(x[i], 2.5)", "powf(x[i], 2.5f)"},
        {"pow(x[i], z[i])", "powf(x[i], z[i])"},
        {"if(x[i] > 0, x[i], 0.01 * x[i])", "x[i] > 0.0f ? x[i] : 0.01f * x[i]"},
        {"1 + if(x[i] >= 1 && z[i] != 2, 1.0, x[i])",
         "1.0f + (x[i] >= 1.0f && z[i] != 2.0f ? 1.0f : x[i])"},
        {"if(!(x[i] < 1) || z[i] == 1, x[i], z[i])",
         "!(x[i] < 1.0f) || z[i] == 1.0f ? x[i] : z[i]"},
        {"x[i] * i", "x[i] * float(i)"},
        {"x[i] + N", "x[i] + float(N)"},
        {"x[i] * (i % 4)", "x[i] * float(cp_floormod(i, 4))"},
        {"x[i] * (i // 4 + 1)", "x[i] * float(cp_floordiv(i, 4) + 1)"},
        {"if(i % 2 == 0, x[i], z[i])", "cp_floormod(i, 2) == 0 ? x[i] : z[i]"},
        {"x[i] / 3", "x[i] / 3.0f"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str helpers, s = emit(rows[i].expression, &helpers);
        CHECKF(str_is(s, rows[i].text), "%s\n#  is: %.*s\n# not: %s", rows[i].expression,
               STR_ARG(s), rows[i].text);
    }
}

static void helpers_used(void) {
    str h;
    emit("x[i] + 1", &h);
    CHECK(h.n == 0);
    emit("maximum(x[i], 0) + maximum(z[i], 0)", &h);
    size_t first = str_find(h, S("float cp_maximum("));
    CHECK(first < h.n &&
          str_find(str_from(h, first + 1), S("float cp_maximum(")) == h.n - first - 1);
    CHECK(str_find(h, S("cp_minimum")) == h.n);
    emit("clamp(x[i], 0, 1) + sigmoid(z[i]) * pow(x[i], 4)", &h);
    CHECK(str_find(h, S("cp_minimum(")) < h.n && str_find(h, S("cp_maximum(")) < h.n &&
          str_find(h, S("cp_sigmoid(")) < h.n && str_find(h, S("cp_square(")) < h.n);
}

/* Loops are the generator's. */
static void refusals(void) {
    static const char *const rows[][2] = {{"1 + sum(k) x[k]", "k.task:6:12: a reduction is not"},
                                          {"exp(pad(x[i-1], 0))", "k.task:6:12: a padded read is"}};
    for (size_t i = 0; i < 2; i++) {
        char text[512];
        struct err err = {0};
        struct buf out;
        snprintf(text, sizeof text, HEAD "%s\n", rows[i][0]);
        const struct task *t = fixture_task(text, arena);
        struct emit_names names = {
            .ctx = (void *)t, .read = read_name, .index = index_name, .dim = dim_name};
        buf_init(&out, 1u << 16);
        CHECKF(!emit_expr(t, t->statements[0].body, &names, &out, &err) &&
                   strstr(err.text, strchr(rows[i][1], ':')),
               "%s", err.text);
        buf_release(&out);
    }
}

/* A full buffer is an error, and so is what no task can hold. */
static void failures(void) {
    struct err err = {0};
    const struct task *t = fixture_task(HEAD "x[i] + 1\n", arena);
    struct emit_names names = {
        .ctx = (void *)t, .read = read_name, .index = index_name, .dim = dim_name};
    struct buf out;
    buf_init(&out, 4);
    CHECK(!emit_expr(t, t->statements[0].body, &names, &out, &err));
    buf_release(&out);
    buf_init(&out, 1u << 20);
    struct expr *e = t->statements[0].body;
    for (int i = 0; i < 1000; i++) {
        struct expr *neg = arena_new_of(arena, struct expr),
                    **args = arena_array(arena, struct expr *, 1);
        args[0] = e;
        *neg = (struct expr){.kind = EXPR_NEG, .value_kind = VALUE_REAL, .args = args, .nargs = 1};
        e = neg;
    }
    CHECK(!emit_expr(t, e, &names, &out, &err) && strstr(err.text, "too deep"));
    buf_release(&out);
}

static const struct tap_case cases[] = {
    {"texts", texts},
    {"helpers", helpers_used},
    {"refusals", refusals},
    {"failures", failures},
};

int main(void) {
    arena = arena_new(256u << 20);
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(arena);
    return failed;
}
