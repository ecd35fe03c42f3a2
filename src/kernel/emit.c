/* Expressions as CUDA text.
 *
 * Each node is written for the precedence its surroundings need and the kind of value they want, so
 * parentheses stand only where C needs them, and integers turn into floats where a real is wanted.
 * Order is kept: a + (b + c) keeps its parentheses, because floating addition is not associative.
 */
#include "kernel/emit.h"

#include "base/asset.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Precedence of C, lowest first. */
enum level {
    LEVEL_ANY,
    LEVEL_TERNARY,
    LEVEL_OR,
    LEVEL_AND,
    LEVEL_EQUAL,
    LEVEL_ORDER,
    LEVEL_ADD,
    LEVEL_MUL,
    LEVEL_UNARY,
    LEVEL_PRIMARY,
};

/* Helper functions, each an asset kernel/helper/NAME.cuh that defines cp_NAME. */
#define HELPERS(HELPER)                                                                            \
    HELPER(MAXIMUM, "maximum")                                                                     \
    HELPER(MINIMUM, "minimum")                                                                     \
    HELPER(SIGMOID, "sigmoid")                                                                     \
    HELPER(SIGN, "sign")                                                                           \
    HELPER(SQUARE, "square")                                                                       \
    HELPER(CUBE, "cube")                                                                           \
    HELPER(FLOORDIV, "floordiv")                                                                   \
    HELPER(FLOORMOD, "floormod")                                                                   \
    HELPER(LARGER, "larger")                                                                       \
    HELPER(SMALLER, "smaller")
enum helper {
#define HELPER(id, name) HELPER_##id,
    HELPERS(HELPER)
#undef HELPER
        HELPER_COUNT
};
static const char *const helper_names[] = {
#define HELPER(id, name) name,
    HELPERS(HELPER)
#undef HELPER
};

struct emit {
    const struct emit_names *names;
    struct buf *out;
    unsigned helpers; /* bits: those that the text calls */
    unsigned depth;
    bool too_deep;
    const struct expr *refused; /* what has no text for one element */
};

static void put(struct emit *m, const struct expr *e, enum level need, enum value_kind want);

/* ---- literals ---- */

/* The fewest digits that read back as the same fp32, with a point or an exponent, and an f. */
static void put_float(struct emit *m, double number) {
    float f = (float)number;
    char text[48];
    if (isnan(f) || isinf(f)) {
        buf_printf(m->out, "%s__int_as_float(0x%s)", f < 0 ? "(-" : "",
                   isnan(f) ? "7fffffff" : "7f800000");
        buf_puts(m->out, f < 0 ? S(")") : S(""));
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)f);
        if (strtof(text, NULL) == f)
            break;
    }
    bool plain = !strpbrk(text, ".e");
    buf_printf(m->out, signbit(f) ? "(%s%sf)" : "%s%sf", text, plain ? ".0" : "");
}

static void put_integer(struct emit *m, int64_t v) {
    bool wide = v > INT32_MAX || v < -INT32_MAX;
    if (v == INT64_MIN)
        buf_puts(m->out, S("(-9223372036854775807LL - 1)"));
    else
        buf_printf(m->out, v < 0 ? "(%" PRId64 "%s)" : "%" PRId64 "%s", v, wide ? "LL" : "");
}

static void put_number(struct emit *m, const struct expr *e, enum value_kind want) {
    if (want == VALUE_REAL || !e->integral)
        put_float(m, e->integral ? (double)e->integer : e->number);
    else
        put_integer(m, e->integer);
}

/* ---- calls ---- */

static void call_begin(struct emit *m, const char *name) {
    buf_printf(m->out, "%s(", name);
}

static void helper_begin(struct emit *m, enum helper h) {
    m->helpers |= 1u << h;
    buf_printf(m->out, "cp_%s(", helper_names[h]);
}

/* The arguments of a call that has begun, and its end. */
static void put_arguments(struct emit *m, struct expr *const *args, size_t n,
                          enum value_kind want) {
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_puts(m->out, S(", "));
        put(m, args[i], LEVEL_TERNARY, want);
    }
    buf_putc(m->out, ')');
}

/* Whole powers that are products; false: not one of them. */
static bool put_small_power(struct emit *m, const struct expr *e) {
    const struct expr *n = e->args[1];
    double power = n->kind != EXPR_NUMBER ? NAN : n->integral ? (double)n->integer : n->number;
    if (power != 2 && power != 3 && power != 4)
        return false;
    if (power == 4)
        helper_begin(m, HELPER_SQUARE);
    helper_begin(m, power == 3 ? HELPER_CUBE : HELPER_SQUARE);
    put_arguments(m, e->args, 1, VALUE_REAL);
    if (power == 4)
        buf_putc(m->out, ')');
    return true;
}

/* minimum(maximum(x, low), high): NaN in x comes through. */
static void put_clamp(struct emit *m, const struct expr *e, bool real) {
    enum value_kind want = real ? VALUE_REAL : VALUE_INT;
    helper_begin(m, real ? HELPER_MINIMUM : HELPER_SMALLER);
    helper_begin(m, real ? HELPER_MAXIMUM : HELPER_LARGER);
    put_arguments(m, e->args, 2, want);
    buf_puts(m->out, S(", "));
    put_arguments(m, e->args + 2, 1, want);
}

/* Functions of reals that CUDA has under a name of its own. */
static const char *const real_names[FUNCTION_COUNT] = {
    [FUNCTION_EXP] = "expf",     [FUNCTION_LOG] = "logf",    [FUNCTION_SQRT] = "sqrtf",
    [FUNCTION_RSQRT] = "rsqrtf", [FUNCTION_TANH] = "tanhf",  [FUNCTION_ERF] = "erff",
    [FUNCTION_SIN] = "sinf",     [FUNCTION_COS] = "cosf",    [FUNCTION_FLOOR] = "floorf",
    [FUNCTION_CEIL] = "ceilf",   [FUNCTION_ROUND] = "rintf", [FUNCTION_EXPM1] = "expm1f",
    [FUNCTION_LOG1P] = "log1pf", [FUNCTION_POW] = "powf",
};

static void put_call(struct emit *m, const struct expr *e) {
    bool real = e->value_kind == VALUE_REAL;
    if (e->function == FUNCTION_POW && put_small_power(m, e))
        return;
    if (e->function == FUNCTION_CLAMP) {
        put_clamp(m, e, real);
        return;
    }
    if (real_names[e->function])
        call_begin(m, real_names[e->function]);
    else if (e->function == FUNCTION_ABS)
        call_begin(m, real ? "fabsf" : "llabs");
    else if (e->function == FUNCTION_SIGMOID)
        helper_begin(m, HELPER_SIGMOID);
    else if (e->function == FUNCTION_SIGN)
        helper_begin(m, HELPER_SIGN);
    else if (e->function == FUNCTION_MAXIMUM)
        helper_begin(m, real ? HELPER_MAXIMUM : HELPER_LARGER);
    else if (e->function == FUNCTION_MINIMUM)
        helper_begin(m, real ? HELPER_MINIMUM : HELPER_SMALLER);
    else
        BUG_IF(true);
    put_arguments(m, e->args, e->nargs, real ? VALUE_REAL : VALUE_INT);
}

/* ---- operators ---- */

struct operator_text {
    const char *sign;
    enum level level;
};
static const struct operator_text operators[] = {
    [EXPR_ADD] = {" + ", LEVEL_ADD},   [EXPR_SUB] = {" - ", LEVEL_ADD},
    [EXPR_MUL] = {" * ", LEVEL_MUL},   [EXPR_DIV] = {" / ", LEVEL_MUL},
    [EXPR_EQ] = {" == ", LEVEL_EQUAL}, [EXPR_NE] = {" != ", LEVEL_EQUAL},
    [EXPR_LT] = {" < ", LEVEL_ORDER},  [EXPR_LE] = {" <= ", LEVEL_ORDER},
    [EXPR_GT] = {" > ", LEVEL_ORDER},  [EXPR_GE] = {" >= ", LEVEL_ORDER},
    [EXPR_AND] = {" && ", LEVEL_AND},  [EXPR_OR] = {" || ", LEVEL_OR},
};

static bool is_real(const struct expr *e) {
    return e->value_kind == VALUE_REAL;
}

/* What kind of value the operands of a node must be. */
static enum value_kind operands_want(const struct expr *e) {
    switch (e->kind) {
    case EXPR_AND:
    case EXPR_OR:
    case EXPR_NOT:
        return VALUE_BOOL;
    case EXPR_DIV:
        return VALUE_REAL;
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        return VALUE_INT;
    case EXPR_EQ:
    case EXPR_NE:
    case EXPR_LT:
    case EXPR_LE:
    case EXPR_GT:
    case EXPR_GE:
        return is_real(e->args[0]) || is_real(e->args[1]) ? VALUE_REAL : VALUE_INT;
    default:
        return is_real(e) ? VALUE_REAL : VALUE_INT;
    }
}

/* The level at which a node's own text stands. */
static enum level level_of(const struct expr *e) {
    switch (e->kind) {
    case EXPR_NEG:
    case EXPR_NOT:
        return LEVEL_UNARY;
    case EXPR_IF:
        return LEVEL_TERNARY;
    case EXPR_NUMBER:
    case EXPR_DIM:
    case EXPR_INDEX:
    case EXPR_READ:
    case EXPR_CALL:
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        return LEVEL_PRIMARY;
    default:
        return operators[e->kind].level;
    }
}

static void put_if(struct emit *m, const struct expr *e) {
    enum value_kind want = e->value_kind;
    put(m, e->args[0], LEVEL_OR, VALUE_BOOL);
    buf_puts(m->out, S(" ? "));
    put(m, e->args[1], LEVEL_OR, want);
    buf_puts(m->out, S(" : "));
    put(m, e->args[2], LEVEL_TERNARY, want);
}

/* The node itself, as a value of its own kind. */
static void put_plain(struct emit *m, const struct expr *e) {
    enum value_kind want = operands_want(e);
    switch (e->kind) {
    case EXPR_NUMBER:
        put_number(m, e, e->value_kind);
        break;
    case EXPR_DIM:
        m->names->dim(m->names->ctx, e->ref, m->out);
        break;
    case EXPR_INDEX:
        m->names->index(m->names->ctx, e->ref, m->out);
        break;
    case EXPR_READ:
        m->names->read(m->names->ctx, e, m->out);
        break;
    case EXPR_CALL:
        put_call(m, e);
        break;
    case EXPR_IF:
        put_if(m, e);
        break;
    case EXPR_NEG:
    case EXPR_NOT:
        buf_putc(m->out, e->kind == EXPR_NEG ? '-' : '!');
        put(m, e->args[0], LEVEL_PRIMARY, want);
        break;
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        helper_begin(m, e->kind == EXPR_MOD ? HELPER_FLOORMOD : HELPER_FLOORDIV);
        put_arguments(m, e->args, 2, want);
        break;
    default:
        put(m, e->args[0], operators[e->kind].level, want);
        buf_puts(m->out, str_view(operators[e->kind].sign));
        put(m, e->args[1], (enum level)(operators[e->kind].level + 1), want);
    }
}

static void put_in_parentheses(struct emit *m, const struct expr *e, bool parentheses) {
    if (parentheses)
        buf_putc(m->out, '(');
    put_plain(m, e);
    if (parentheses)
        buf_putc(m->out, ')');
}

/* A value of another kind than the one wanted, as a primary. */
static void put_converted(struct emit *m, const struct expr *e, enum value_kind want) {
    bool negative = e->kind == EXPR_NEG && e->args[0]->kind == EXPR_NUMBER;
    if (negative && want == VALUE_REAL) {
        buf_puts(m->out, S("(-"));
        put_number(m, e->args[0], VALUE_REAL);
        buf_putc(m->out, ')');
    } else if (want == VALUE_BOOL) {
        buf_putc(m->out, '(');
        put_in_parentheses(m, e, level_of(e) < LEVEL_EQUAL);
        buf_puts(m->out, is_real(e) ? S(" != 0.0f)") : S(" != 0)"));
    } else if (e->value_kind == VALUE_BOOL) {
        buf_putc(m->out, '(');
        put_in_parentheses(m, e, level_of(e) < LEVEL_OR);
        buf_puts(m->out, want == VALUE_REAL ? S(" ? 1.0f : 0.0f)") : S(" ? 1 : 0)"));
    } else {
        buf_puts(m->out, want == VALUE_REAL ? S("float") : S("int"));
        put_in_parentheses(m, e, true);
    }
}

static void put(struct emit *m, const struct expr *e, enum level need, enum value_kind want) {
    if (++m->depth > TASK_MAX_DEPTH + 8)
        m->too_deep = true;
    else if (e->kind == EXPR_PAD || e->kind == EXPR_REDUCE)
        m->refused = e;
    else if (e->kind == EXPR_NUMBER && want != VALUE_BOOL)
        put_number(m, e, want);
    else if (e->value_kind == want)
        put_in_parentheses(m, e, level_of(e) < need);
    else
        put_converted(m, e, want);
    m->depth--;
}

/* ---- the header's functions ---- */

bool emit_expr(const struct task *t, const struct expr *e, const struct emit_names *names,
               struct buf *out, struct err *err) {
    struct emit m = {.names = names, .out = out};
    put(&m, e, LEVEL_ANY, e->value_kind);
    if (m.too_deep)
        return err_at(err, t->file, t->text, e->at, e->len, NULL,
                      "nested too deep for a generated kernel");
    if (m.refused)
        return err_at(err, t->file, t->text, m.refused->at, m.refused->len, NULL,
                      "a %s is not an expression of one element",
                      m.refused->kind == EXPR_PAD ? "padded read" : "reduction");
    if (out->failed)
        return err_set(err, ERR_ENV, "a generated kernel is too long");
    return true;
}

static void no_read(void *ctx, const struct expr *e, struct buf *out) {
    (void)ctx, (void)e, (void)out;
}

static void no_name(void *ctx, size_t which, struct buf *out) {
    (void)ctx, (void)which, (void)out;
}

static void put_helper(enum helper h, struct buf *out) {
    char name[64];
    struct arena *a = arena_new(1u << 20);
    struct err err;
    str text;
    snprintf(name, sizeof name, "kernel/helper/%s.cuh", helper_names[h]);
    bool known = asset_get(NULL, name, a, &text, &err);
    BUG_IF(!known); /* it is embedded */
    buf_puts(out, text);
    arena_free(a);
}

/* Which helpers a text calls is known by writing it. */
void emit_helpers(const struct task *t, const struct expr *e, struct buf *out) {
    struct buf text;
    struct emit_names names = {NULL, no_read, no_name, no_name};
    struct emit m = {.names = &names, .out = &text};
    (void)t;
    buf_init(&text, 1u << 20);
    put(&m, e, LEVEL_ANY, e->value_kind);
    buf_release(&text);
    for (int h = 0; h < HELPER_COUNT; h++)
        if (m.helpers & 1u << h)
            put_helper((enum helper)h, out);
}
