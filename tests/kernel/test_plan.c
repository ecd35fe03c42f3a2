/* Plan arithmetic: values, precedence, and everything that has none. */
#include "tap.h"

#include "fixture.h"
#include "kernel/plan.h"

static struct arena *arena;
static const struct task *task;

static struct expr *parse(const char *text, struct err *err) {
    static struct plan_let lets[1];
    static struct expr four = {.kind = EXPR_NUMBER, .integer = 4, .integral = true};
    lets[0] = (struct plan_let){S("V"), &four};
    struct plan_reader r = plan_reader_on(S("k.cu"), str_view(text), task, arena, err);
    r.lets = lets;
    r.nlets = 1;
    if (!parse_next(&r.p))
        return NULL;
    struct expr *e = plan_expr_parse(&r);
    if (e && r.p.tok.kind != TOKEN_END) {
        err_set(err, ERR_INPUT, "left over: %.*s", STR_ARG(r.p.tok.text));
        return NULL;
    }
    return e;
}

static bool value(const char *text, int64_t *out, const char **why) {
    static const int64_t dims[] = {1000, 7}, lets[] = {4};
    struct err err = {0};
    struct expr *e = parse(text, &err);
    struct expr_fault fault = {.why = ""};
    CHECKF(e != NULL, "%s: %s", text, err.text);
    bool ok = e && expr_eval_integer(e, dims, lets, out, &fault);
    *why = fault.why;
    return ok;
}

static void values(void) {
    static const struct {
        const char *text;
        int64_t is;
    } rows[] = {
        {"1", 1},
        {"0x10", 16},
        {"N", 1000},
        {"V", 4},
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"10 - 3 - 2", 5},
        {"100 / 7 * 7", 98},
        {"7 // 2", 3},
        {"7 / 2", 3},
        {"-7 / 2", -4},
        {"-7 % 3", 2},
        {"7 % -3", -2},
        {"- -3", 3},
        {"!0 + !5", 1},
        {"ceil_div(N, 256*V)", 1},
        {"ceil_div(1001, 4)", 251},
        {"ceil_div(-7, 2)", -3},
        {"min(3, 2) + max(3, 2)", 5},
        {"min(max(N, M), ceil_div(N, 3))", 334},
        {"1 < 2 && 2 < 3", 1},
        {"N % V == 0 && M != 8", 1},
        {"1 || 0 && 0", 1},
        {"2 && 3", 1},
        {"0 && 1 / 0", 0},
        {"1 || 1 / 0", 1},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775807 - 1", INT64_MIN},
        {"\t3\r", 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t v = 0;
        const char *why;
        CHECKF(value(rows[i].text, &v, &why) && v == rows[i].is, "%s is %lld, not %lld (%s)",
               rows[i].text, (long long)v, (long long)rows[i].is, why);
    }
}

static void no_values(void) {
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"1 / 0", "division by zero"},
        {"N % (V - 4)", "division by zero"},
        {"ceil_div(1, 0)", "division by zero"},
        {"9223372036854775807 + 1", "does not fit"},
        {"-9223372036854775807 - 2", "does not fit"},
        {"4611686018427387904 * 2", "does not fit"},
        {"-(-9223372036854775807 - 1)", "does not fit"},
        {"(-9223372036854775807 - 1) / -1", "does not fit"},
        {"(-9223372036854775807 - 1) % -1", "does not fit"},
        {"ceil_div(-9223372036854775807 - 1, 1)", "does not fit"},
        {"1 && 1 / 0", "division by zero"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t v;
        const char *why;
        CHECKF(!value(rows[i].text, &v, &why) && strstr(why, rows[i].why), "%s: %s", rows[i].text,
               why);
    }
}

static void errors(void) {
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "found the end of the line"},
        {"1 +", "found the end of the line"},
        {"(1", "expected ')'"},
        {"1 < 2 < 3", "cannot be chained"},
        {"1 < 2 == 1", "cannot be chained"},
        {"Q", "known here: N M V"},
        {"x", "is a tensor"},
        {"foo(1, 2)", "min(a, b)"},
        {"min", "expected '('"},
        {"min(1)", "expected ','"},
        {"min(1, 2, 3)", "expected ')'"},
        {"aligned(x, 16)", "aligned() can only stand in a require line"},
        {"1.5", "unexpected character"},
        {"12ab", "bad number"},
        {"9223372036854775808", "bad number"},
        {"1 @ 2", "unexpected character"},
        {"1 = 2", "left over"},
        {"\"a\"", "unexpected character"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        CHECKF(!parse(rows[i].text, &err), "%s parsed", rows[i].text);
        CHECKF(strstr(err.text, rows[i].says), "%s: %s", rows[i].text, err.text);
        CHECKF(err.kind == ERR_INPUT, "%s", rows[i].text);
    }
}

/* However it is nested, the stack stays small. */
static void depth(void) {
    static const char *const pieces[] = {"(", "-", "!", "1+", "1||", "min(1,"};
    static char text[20000];
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct err err = {0};
        size_t n = 0, len = strlen(pieces[i]);
        while (n + len + 2 < sizeof text) {
            memcpy(text + n, pieces[i], len);
            n += len;
        }
        text[n] = '1';
        text[n + 1] = 0;
        CHECKF(!parse(text, &err) && strstr(err.text, "nested deeper"), "%s: %.100s", pieces[i],
               err.text);
    }
    struct err err = {0};
    CHECK(parse("((((((((((((((((((((1))))))))))))))))))))", &err) != NULL);
}

static void setup(void) {
    arena = arena_new(64u << 20);
    task = fixture_task(FIXTURE_TASK, arena);
}

static const struct tap_case cases[] = {
    {"values", values},
    {"what has no value", no_values},
    {"errors", errors},
    {"nesting is limited", depth},
};

int main(void) {
    setup();
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(arena);
    return failed;
}
