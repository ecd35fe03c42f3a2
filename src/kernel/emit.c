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

#define EMIT_DEPTH 800 /* lets written out nest deeper than a task's own text */

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

/* Helper functions, each an asset kernel/helper/NAME.cuh that defines cp_NAME. A bit each. */
static const char *const helper_names[] = {
    "maximum",    "minimum",  "sigmoid", "sign",     "square",       "cube",         "floordiv",
    "floormod",   "larger",   "smaller", "quotient", "fast_sqrt",    "fast_tanh",    "fast_sigmoid",
    "fast_expm1", "long_sum", "best",    "warp_sum", "warp_product", "warp_maximum", "warp_minimum",
    "bit_and",    "bit_or",   "bit_xor", "shl",      "shr",          "philox"};
enum { HELPER_COUNT = sizeof helper_names / sizeof *helper_names };

struct emit {
    const struct emit_names *names;
    struct buf *out;
    uint64_t helpers; /* bits: those that the text calls */
    unsigned depth;
    bool too_deep;
    bool integer, wide;         /* inside an integer expression; whose leaves are long long */
    const struct expr *refused; /* what has no text for one element */
};

static void put(struct emit *m, const struct expr *e, enum level need, enum value_kind want);

/* ---- literals ---- */

/* The fewest digits that read back as the same fp32, with a point or an exponent, and an f. */
void emit_float(double number, struct buf *out) {
    float f = (float)number;
    char text[48];
    if (isnan(f) || isinf(f)) {
        buf_puts(out, isnan(f) ? S("NAN") : f < 0 ? S("(-INFINITY)") : S("INFINITY"));
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)f);
        if (strtof(text, NULL) == f)
            break;
    }
    bool plain = !strpbrk(text, ".e");
    buf_printf(out, signbit(f) ? "(%s%sf)" : "%s%sf", text, plain ? ".0" : "");
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
        emit_float(e->integral ? (double)e->integer : e->number, m->out);
    else
        put_integer(m, e->integer);
}

/* ---- calls ---- */

/* Of a function of CUDA, or of a helper cp_NAME. */
static void call_begin(struct emit *m, const char *name) {
    if (str_starts(str_view(name), S("cp_")))
        m->helpers |= emit_helper(name + 3);
    buf_printf(m->out, "%s(", name);
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
        call_begin(m, "cp_square");
    call_begin(m, power == 3 ? "cp_cube" : "cp_square");
    put_arguments(m, e->args, 1, VALUE_REAL);
    if (power == 4)
        buf_putc(m->out, ')');
    return true;
}

/* minimum(maximum(x, low), high): NaN in x comes through. */
static void put_clamp(struct emit *m, const struct expr *e, bool real) {
    enum value_kind want = real ? VALUE_REAL : VALUE_INT;
    call_begin(m, real ? "cp_minimum" : "cp_smaller");
    call_begin(m, real ? "cp_maximum" : "cp_larger");
    put_arguments(m, e->args, 2, want);
    buf_puts(m->out, S(", "));
    put_arguments(m, e->args + 2, 1, want);
}

static void put_call(struct emit *m, const struct expr *e) {
    bool real = e->value_kind == VALUE_REAL;
    if (e->function == FUNCTION_POW && put_small_power(m, e))
        return;
    if (e->function == FUNCTION_CLAMP) {
        put_clamp(m, e, real);
        return;
    }
    const struct function_info *f = function_info(e->function);
    call_begin(m, !real ? f->integer : m->names->fast ? f->fast : f->cuda);
    bool reals = real && !function_takes_integers(e->function);
    put_arguments(m, e->args, e->nargs, reals ? VALUE_REAL : VALUE_INT);
}

/* ---- operators ---- */

struct operator_text {
    const char *sign;
    enum level level;
};
static const struct operator_text operators[] = {
    [EXPR_ADD] = {" + ", LEVEL_ADD},      [EXPR_SUB] = {" - ", LEVEL_ADD},
    [EXPR_MUL] = {" * ", LEVEL_MUL},      [EXPR_DIV] = {" / ", LEVEL_MUL},
    [EXPR_EQ] = {" == ", LEVEL_EQUAL},    [EXPR_NE] = {" != ", LEVEL_EQUAL},
    [EXPR_LT] = {" < ", LEVEL_ORDER},     [EXPR_LE] = {" <= ", LEVEL_ORDER},
    [EXPR_GT] = {" > ", LEVEL_ORDER},     [EXPR_GE] = {" >= ", LEVEL_ORDER},
    [EXPR_AND] = {" && ", LEVEL_AND},     [EXPR_OR] = {" || ", LEVEL_OR},
    [EXPR_FLOORDIV] = {" / ", LEVEL_MUL}, [EXPR_MOD] = {" % ", LEVEL_MUL},
};

/* A quotient of integers that C's own operator has right. */
static bool is_plain_division(const struct emit *m, const struct expr *e) {
    return (e->kind == EXPR_FLOORDIV || e->kind == EXPR_MOD) && m->names->plain_division &&
           m->names->plain_division(m->names->ctx, e);
}

/* A quotient of reals, as a call. */
static bool is_fast_division(const struct emit *m, const struct expr *e) {
    return e->kind == EXPR_DIV && m->names->fast;
}

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

static str held_text(const struct emit *m, const struct expr *e) {
    return m->names->held ? m->names->held(m->names->ctx, e) : S("");
}

/* The level at which a node's own text stands. */
static enum level level_of(const struct emit *m, const struct expr *e) {
    if (held_text(m, e).n)
        return LEVEL_PRIMARY;
    if (is_plain_division(m, e))
        return LEVEL_MUL;
    if (is_fast_division(m, e))
        return LEVEL_PRIMARY;
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
    case EXPR_PAD:
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

static void put_binary(struct emit *m, const struct expr *e, enum value_kind want) {
    put(m, e->args[0], operators[e->kind].level, want);
    buf_puts(m->out, str_view(operators[e->kind].sign));
    put(m, e->args[1], (enum level)(operators[e->kind].level + 1), want);
}

static void put_widening(struct emit *m, const struct expr *e) {
    if (m->wide && e->value_kind == VALUE_INT)
        buf_puts(m->out, S("(long long)"));
}

/* What the generator names. */
static void put_leaf(struct emit *m, const struct expr *e) {
    const struct emit_names *n = m->names;
    put_widening(m, e);
    if (e->kind == EXPR_DIM)
        n->dim(n->ctx, e->ref, m->out);
    else if (e->kind == EXPR_INDEX)
        n->index(n->ctx, e->ref, m->out);
    else if (e->kind == EXPR_READ)
        n->read(n->ctx, e, m->out);
    else
        n->pad(n->ctx, e, m->out);
}

/* The node itself, as a value of its own kind. */
static void put_plain(struct emit *m, const struct expr *e) {
    enum value_kind want = operands_want(e);
    str held = held_text(m, e);
    if (held.n) {
        put_widening(m, e);
        buf_puts(m->out, held);
        return;
    }
    switch (e->kind) {
    case EXPR_NUMBER:
        put_number(m, e, e->value_kind);
        break;
    case EXPR_DIM:
    case EXPR_INDEX:
    case EXPR_READ:
    case EXPR_PAD:
        put_leaf(m, e);
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
        if (is_plain_division(m, e)) {
            put_binary(m, e, want);
            break;
        }
        call_begin(m, e->kind == EXPR_MOD ? "cp_floormod" : "cp_floordiv");
        put_arguments(m, e->args, 2, want);
        break;
    default:
        if (is_fast_division(m, e)) {
            call_begin(m, "cp_quotient");
            put_arguments(m, e->args, 2, want);
        } else {
            put_binary(m, e, want);
        }
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
        put_in_parentheses(m, e, level_of(m, e) < LEVEL_EQUAL);
        buf_puts(m->out, is_real(e) ? S(" != 0.0f)") : S(" != 0)"));
    } else if (e->value_kind == VALUE_BOOL) {
        buf_putc(m->out, '(');
        put_in_parentheses(m, e, level_of(m, e) < LEVEL_OR);
        buf_puts(m->out, want == VALUE_REAL ? S(" ? 1.0f : 0.0f)") : S(" ? 1 : 0)"));
    } else {
        buf_puts(m->out, want == VALUE_REAL ? S("float") : S("int"));
        put_in_parentheses(m, e, true);
    }
}

static bool is_leaf(const struct expr *e) {
    return e->kind == EXPR_NUMBER || e->kind == EXPR_DIM || e->kind == EXPR_INDEX ||
           e->kind == EXPR_READ || e->kind == EXPR_PAD;
}

static bool is_refused(const struct emit *m, const struct expr *e) {
    bool loop = e->kind == EXPR_REDUCE || (e->kind == EXPR_PAD && !m->names->pad);
    return loop && held_text(m, e).n == 0;
}

/* At the outermost node of an integer expression it is settled how wide all of it is. */
static void enter(struct emit *m, const struct expr *e) {
    const struct emit_names *n = m->names;
    bool inside = m->integer;
    m->integer = e->value_kind == VALUE_INT;
    if (!m->integer)
        m->wide = false;
    else if (!inside)
        m->wide = n->narrow && !is_leaf(e) && !n->narrow(n->ctx, e);
}

static void put(struct emit *m, const struct expr *e, enum level need, enum value_kind want) {
    bool integer = m->integer, wide = m->wide;
    enter(m, e);
    if (++m->depth > EMIT_DEPTH)
        m->too_deep = true;
    else if (is_refused(m, e))
        m->refused = e;
    else if (e->kind == EXPR_NUMBER && want != VALUE_BOOL)
        put_number(m, e, want);
    else if (e->value_kind == want)
        put_in_parentheses(m, e, level_of(m, e) < need);
    else
        put_converted(m, e, want);
    m->depth--;
    m->integer = integer;
    m->wide = wide;
}

/* ---- the header's functions ---- */

bool emit_expr(const struct task *t, const struct expr *e, const struct emit_names *names,
               struct buf *out, struct err *err) {
    struct emit m = {.names = names, .out = out};
    put(&m, e, LEVEL_ANY, e->value_kind);
    if (names->helpers)
        *names->helpers |= m.helpers;
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

static void put_helper(const char *helper, struct buf *out) {
    char name[64];
    struct arena *a = arena_new(1u << 20);
    struct err err;
    str text;
    snprintf(name, sizeof name, "kernel/helper/%s.cuh", helper);
    bool known = asset_get(NULL, name, a, &text, &err);
    BUG_IF(!known); /* it is embedded */
    buf_puts(out, text);
    arena_free(a);
}

uint64_t emit_helper(const char *name) {
    int h = 0;
    while (h < HELPER_COUNT && strcmp(helper_names[h], name) != 0)
        h++;
    BUG_IF(h == HELPER_COUNT);
    return UINT64_C(1) << h;
}

void emit_helper_texts(uint64_t helpers, struct buf *out) {
    for (int h = 0; h < HELPER_COUNT; h++)
        if (helpers & UINT64_C(1) << h)
            put_helper(helper_names[h], out);
}
