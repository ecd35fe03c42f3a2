/* Expressions as lines of text. Which operations exist, what they are called with and which of them
 * are exact follows spec/program.c node by node. */
#include "kernel/oracle_text.h"

#include "spec/pattern.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- short texts ---- */

str oracle_number(struct oracle_text *x, double v) {
    if (isnan(v))
        return S("NAN");
    if (isinf(v))
        return v < 0 ? S("(-INFINITY)") : S("INFINITY");
    char text[48];
    int digits = 1;
    do
        snprintf(text, sizeof text, "%.*g", digits, v);
    while (digits++ < 17 && strtod(text, NULL) != v);
    return arena_printf(x->a, v < 0 ? "(%s%s)" : "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

const char *oracle_dtype(enum dtype t) {
    static const char *const names[DTYPE_COUNT] = {
#define DTYPE(id, name, bytes, cuda, npy, kind) "DTYPE_" #id,
#include "spec/dtype.def"
#undef DTYPE
    };
    return names[t];
}

/* A reduction's variable is named where it is bound. As deep as the tree. */
static str var_name(const struct expr *e, size_t var) {
    str name = {0};
    if (e->kind == EXPR_REDUCE)
        for (size_t i = 0; i < e->reduce->nvars; i++)
            if (e->reduce->vars[i].var == var)
                return e->reduce->vars[i].name;
    for (size_t i = 0; i < expr_nparts(e) && !name.n; i++)
        name = var_name(expr_part(e, i), var);
    return name;
}

str oracle_variable(struct oracle_text *x, const struct statement *s, size_t var) {
    str name = var < s->nindex ? s->index[var] : var_name(s->body, var);
    return arena_printf(x->a, "%.*s_", STR_ARG(name));
}

static str axes_text(struct oracle_text *x, const struct oracle_step *p, const char *type) {
    str s = S("");
    for (size_t i = 0; i < p->naxes; i++)
        s = arena_printf(x->a, "%.*s, %s%.*s", STR_ARG(s), type,
                         STR_ARG(oracle_variable(x, p->s, p->axis[i])));
    return s;
}

str oracle_parameters(struct oracle_text *x, const struct oracle_step *p) {
    return axes_text(x, p, "int64_t ");
}

str oracle_arguments(struct oracle_text *x, const struct oracle_step *p) {
    return axes_text(x, p, "");
}

void oracle_put_source(struct oracle_text *x, size_t at, size_t len) {
    str text = str_trim(str_cut(x->t->text, at, len > 160 ? 160 : len));
    buf_puts(x->out, S("\n// "));
    for (size_t i = 0; i < text.n; i++)
        buf_putc(x->out, text.p[i] < ' ' || text.p[i] == '\\' ? ' ' : text.p[i]);
    buf_puts(x->out, len > 160 ? S(" ...\n") : S("\n"));
}

/* ---- integers over indices and sizes ---- */

static const char *operator_of(enum expr_kind k) {
    static const char *const signs[] = {
        [EXPR_ADD] = "+", [EXPR_SUB] = "-", [EXPR_MUL] = "*",  [EXPR_DIV] = "/",
        [EXPR_EQ] = "==", [EXPR_NE] = "!=", [EXPR_LT] = "<",   [EXPR_LE] = "<=",
        [EXPR_GT] = ">",  [EXPR_GE] = ">=", [EXPR_AND] = "&&", [EXPR_OR] = "||"};
    return signs[k];
}

static str integer_call(struct oracle_text *x, const struct expr *e, const str *a) {
    switch (e->function) {
    case FUNCTION_ABS:
        return arena_printf(x->a, "larger(%.*s, -(%.*s))", STR_ARG(a[0]), STR_ARG(a[0]));
    case FUNCTION_MAXIMUM:
        return arena_printf(x->a, "larger(%.*s, %.*s)", STR_ARG(a[0]), STR_ARG(a[1]));
    case FUNCTION_MINIMUM:
        return arena_printf(x->a, "smaller(%.*s, %.*s)", STR_ARG(a[0]), STR_ARG(a[1]));
    case FUNCTION_CLAMP:
        return arena_printf(x->a, "smaller(larger(%.*s, %.*s), %.*s)", STR_ARG(a[0]), STR_ARG(a[1]),
                            STR_ARG(a[2]));
    case FUNCTION_SIGN:
        return arena_printf(x->a, "(int64_t)((%.*s > 0) - (%.*s < 0))", STR_ARG(a[0]),
                            STR_ARG(a[0]));
    default: /* floor, ceil, round */
        return a[0];
    }
}

static str integer_node(struct oracle_text *x, const struct expr *e, const str *a) {
    switch (e->kind) {
    case EXPR_NEG:
        return arena_printf(x->a, "(-%.*s)", STR_ARG(a[0]));
    case EXPR_NOT:
        return arena_printf(x->a, "(!%.*s)", STR_ARG(a[0]));
    case EXPR_FLOORDIV:
        return arena_printf(x->a, "floordiv(%.*s, %.*s)", STR_ARG(a[0]), STR_ARG(a[1]));
    case EXPR_MOD:
        return arena_printf(x->a, "floormod(%.*s, %.*s)", STR_ARG(a[0]), STR_ARG(a[1]));
    case EXPR_IF:
        return arena_printf(x->a, "(%.*s ? %.*s : %.*s)", STR_ARG(a[0]), STR_ARG(a[1]),
                            STR_ARG(a[2]));
    case EXPR_CALL:
        return integer_call(x, e, a);
    default:
        return arena_printf(x->a, "(%.*s %s %.*s)", STR_ARG(a[0]), operator_of(e->kind),
                            STR_ARG(a[1]));
    }
}

str oracle_integer(struct oracle_text *x, const struct statement *s, const struct expr *e) {
    str a[3] = {{0}};
    switch (e->kind) {
    case EXPR_NUMBER:
        return arena_printf(x->a, e->integer < 0 ? "(%" PRId64 "ll)" : "%" PRId64 "ll", e->integer);
    case EXPR_DIM:
        return arena_printf(x->a, "dim_%.*s", STR_ARG(x->t->dims[e->ref].name));
    case EXPR_INDEX:
        return oracle_variable(x, s, e->ref);
    default:
        for (size_t i = 0; i < e->nargs && i < 3; i++)
            a[i] = oracle_integer(x, s, e->args[i]);
        return integer_node(x, e, a);
    }
}

/* ---- lines ---- */

struct oracle_code oracle_code_begin(struct oracle_text *x, const struct statement *s, bool plain,
                                     int indent) {
    return (struct oracle_code){.x = x, .s = s, .plain = plain, .indent = indent};
}

void oracle_code_end(struct oracle_code *c) {
    mem_free(c->lines);
    c->lines = NULL;
}

/* The name of a line with this text, new or written before. */
static str line(struct oracle_code *c, const char *type, str text) {
    for (size_t i = 0; i < c->nlines; i++)
        if (str_eq(c->lines[i].text, text))
            return c->lines[i].name;
    char kind = strcmp(type, "int64_t") == 0 ? 'k' : 'v';
    str name = arena_printf(c->x->a, "%c%zu", kind, c->nlines);
    buf_printf(c->x->out, "%*sconst %s %.*s = ", c->indent, "", type, STR_ARG(name));
    buf_puts(c->x->out, text);
    buf_puts(c->x->out, S(";\n"));
    c->lines = mem_grow(c->lines, &c->cap, c->nlines + 1, sizeof *c->lines);
    c->lines[c->nlines++] = (struct oracle_line){name, text};
    return name;
}

static struct oracle_operand operand(struct oracle_code *c, bool exact, str text) {
    exact |= c->plain;
    return (struct oracle_operand){line(c, exact ? "double" : "value", text), exact};
}

static struct oracle_operand ready(str text) {
    return (struct oracle_operand){text, true};
}

/* ---- reads ---- */

struct place {
    str arguments; /* ", k0, k1" */
    str uncertain[TASK_MAX_RANK];
    size_t nuncertain;
    bool from_data;
};

static bool is_word(str s) {
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == ' ' || s.p[i] == '(')
            return false;
    return true;
}

static struct place place_of(struct oracle_code *c, const struct expr *read) {
    struct place p = {.arguments = S("")};
    for (size_t k = 0; k < read->nargs; k++) {
        str at;
        if (pattern_is_pure(read->args[k])) {
            at = oracle_integer(c->x, c->s, read->args[k]);
            at = is_word(at) ? at : line(c, "int64_t", at);
        } else {
            struct oracle_operand o = oracle_put_value(c, read->args[k], false);
            at = line(c, "int64_t",
                      arena_printf(c->x->a, "place(%.*s%s)", STR_ARG(o.text), o.exact ? "" : ".v"));
            p.from_data = true;
            if (!o.exact)
                p.uncertain[p.nuncertain++] = o.text;
        }
        p.arguments = arena_printf(c->x->a, "%.*s, %.*s", STR_ARG(p.arguments), STR_ARG(at));
    }
    return p;
}

/* e: a READ; pad: the value beyond its edges, or NULL. */
static struct oracle_operand put_read(struct oracle_code *c, const struct expr *e,
                                      const struct expr *pad) {
    struct oracle_text *x = c->x;
    const struct tensor *t = &x->t->tensors[e->ref];
    bool element = t->role != TENSOR_LET && t->dtype != DTYPE_F64; /* read_… gives a double */
    struct oracle_operand otherwise = {c->plain  ? S("NAN")
                                       : element ? S("0.0")
                                                 : S("undefined()"),
                                       element};
    struct place p = place_of(c, e);
    if (pad)
        otherwise = oracle_put_value(c, pad, e->value_kind == VALUE_REAL);
    bool exact = (element && otherwise.exact && p.nuncertain == 0) || c->plain;
    str read = c->plain
                   ? arena_printf(x->a, "element_%.*s(o, at_%.*s(o%.*s))", STR_ARG(t->name),
                                  STR_ARG(t->name), STR_ARG(p.arguments))
                   : arena_printf(x->a, "read_%.*s(o%.*s)", STR_ARG(t->name), STR_ARG(p.arguments));
    if (pad && exact && !c->plain && oracle_is_loaded(t))
        read = arena_printf(x->a, "padded_%.*s(o%.*s, %.*s)", STR_ARG(t->name),
                            STR_ARG(p.arguments), STR_ARG(otherwise.text));
    else if (t->rank && (pad || c->checked || p.from_data || c->plain))
        read = arena_printf(x->a,
                            exact ? "inside_%.*s(o%.*s) ? %.*s : %.*s"
                                  : "inside_%.*s(o%.*s) ? value(%.*s) : value(%.*s)",
                            STR_ARG(t->name), STR_ARG(p.arguments), STR_ARG(read),
                            STR_ARG(otherwise.text));
    for (size_t i = 0; i < p.nuncertain; i++)
        read = arena_printf(x->a, "read_at(%.*s, %.*s)", STR_ARG(p.uncertain[i]), STR_ARG(read));
    return operand(c, exact, read);
}

static struct oracle_operand put_reduce(struct oracle_code *c, const struct expr *e) {
    struct oracle_text *x = c->x;
    const struct oracle_step *p = oracle_plan_find(&x->plan, e);
    if (!p)
        return oracle_put_plain_reduce(c, e);
    return operand(c, false,
                   arena_printf(x->a, "reduced_%zu(o%.*s)", (size_t)(p - x->plan.steps),
                                STR_ARG(oracle_arguments(x, p))));
}

/* ---- operations ---- */

static bool operand_real(const struct expr *e) {
    if (e->kind >= EXPR_EQ && e->kind <= EXPR_GE)
        return e->args[0]->value_kind == VALUE_REAL || e->args[1]->value_kind == VALUE_REAL;
    return e->value_kind == VALUE_REAL;
}

/* A difference, or what may hide one: another reads as a product that can be multiplied out. */
static bool is_difference(const struct task *t, const struct expr *e) {
    if (e->value_kind != VALUE_REAL)
        return false;
    if (e->kind == EXPR_READ || e->kind == EXPR_PAD)
        return t->tensors[e->kind == EXPR_PAD ? e->args[0]->ref : e->ref].role == TENSOR_LET;
    return e->kind == EXPR_REDUCE || e->kind == EXPR_SUB;
}

/* How a result is settled (assets/oracle/value.cuh), as a last argument. */
static str settled_as(const struct oracle_code *c, const struct expr *e) {
    bool regroups = e->kind == EXPR_MUL &&
                    (is_difference(c->x->t, e->args[0]) || is_difference(c->x->t, e->args[1]));
    str how = S("");
    if (e->value_kind == VALUE_INT)
        how = S(" | INTEGER");
    if (c->root == e)
        how = arena_printf(c->x->a, "%.*s | ROOT", STR_ARG(how));
    if (regroups)
        how = arena_printf(c->x->a, "%.*s | REGROUPS", STR_ARG(how));
    return how.n ? arena_printf(c->x->a, ", %.*s", STR_ARG(str_from(how, 3))) : how;
}

static const char *value_node(enum expr_kind k) {
    switch (k) {
    case EXPR_NEG:
        return "negate";
    case EXPR_ADD:
        return "add";
    case EXPR_SUB:
        return "sub";
    case EXPR_MUL:
        return "mul";
    case EXPR_DIV:
        return "divide";
    case EXPR_FLOORDIV:
        return "floor_divide";
    default:
        return "modulo";
    }
}

static str call_text(struct oracle_code *c, const char *prefix, const char *name,
                     const struct oracle_operand *a, size_t n, str end) {
    str s = arena_printf(c->x->a, "%s%s(", prefix, name);
    for (size_t i = 0; i < n; i++)
        s = arena_printf(c->x->a, "%.*s%s%.*s", STR_ARG(s), i ? ", " : "", STR_ARG(a[i].text));
    return arena_printf(c->x->a, "%.*s%.*s)", STR_ARG(s), STR_ARG(end));
}

/* The value itself, then whether it may go the other way. */
static str compare_text(struct oracle_code *c, const struct expr *e, const struct oracle_operand *a,
                        bool exact) {
    bool truths = e->args[0]->value_kind == VALUE_BOOL;
    const char *sign = operator_of(e->kind), *v0 = a[0].exact ? "" : ".v",
               *v1 = a[1].exact ? "" : ".v";
    str test = arena_printf(c->x->a, "%.*s%s %s %.*s%s ? 1.0 : 0.0", STR_ARG(a[0].text), v0, sign,
                            STR_ARG(a[1].text), v1);
    if (exact)
        return test;
    return arena_printf(c->x->a, "value(%.*s, %s(%.*s, %.*s))", STR_ARG(test),
                        truths ? "doubt_truths" : "doubt", STR_ARG(a[0].text), STR_ARG(a[1].text));
}

static str logic_text(struct oracle_code *c, const struct expr *e, const struct oracle_operand *a,
                      bool exact) {
    if (!exact)
        return call_text(c, "logical_",
                         e->kind == EXPR_NOT   ? "not"
                         : e->kind == EXPR_AND ? "and"
                                               : "or",
                         a, e->nargs, S(""));
    if (e->kind == EXPR_NOT)
        return arena_printf(c->x->a, "%.*s != 0 ? 0.0 : 1.0", STR_ARG(a[0].text));
    return arena_printf(c->x->a, "%.*s != 0 %s %.*s != 0 ? 1.0 : 0.0", STR_ARG(a[0].text),
                        operator_of(e->kind), STR_ARG(a[1].text));
}

/* Functions that are exact of exact operands, in plain doubles; and all those of definitions. */
static str plain_call(struct oracle_code *c, const struct expr *e, const struct oracle_operand *a) {
    switch (e->function) {
    case FUNCTION_ABS:
        return call_text(c, "", "fabs", a, 1, S(""));
    case FUNCTION_ROUND:
        return call_text(c, "", "rint", a, 1, S(""));
    case FUNCTION_SIGN:
        return call_text(c, "", "sign_of", a, 1, S(""));
    case FUNCTION_MAXIMUM:
        return call_text(c, "", "plain_larger", a, 2, S(""));
    case FUNCTION_MINIMUM:
        return call_text(c, "", "plain_smaller", a, 2, S(""));
    case FUNCTION_CLAMP:
    case FUNCTION_SIGMOID:
        return call_text(c, "plain_", function_name(e->function), a, e->nargs, S(""));
    case FUNCTION_RSQRT:
        return arena_printf(c->x->a, "1 / sqrt(%.*s)", STR_ARG(a[0].text));
    default:
        return call_text(c, "", function_name(e->function), a, e->nargs, S(""));
    }
}

static str plain_node(struct oracle_code *c, const struct expr *e, const struct oracle_operand *a) {
    switch (e->kind) {
    case EXPR_CALL:
        return plain_call(c, e, a);
    case EXPR_NEG:
        return arena_printf(c->x->a, "-%.*s", STR_ARG(a[0].text));
    case EXPR_IF:
        return arena_printf(c->x->a, "%.*s != 0 ? %.*s : %.*s", STR_ARG(a[0].text),
                            STR_ARG(a[1].text), STR_ARG(a[2].text));
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        return call_text(c, "plain_", e->kind == EXPR_MOD ? "floormod" : "floordiv", a, 2, S(""));
    default:
        return arena_printf(c->x->a, "%.*s %s %.*s", STR_ARG(a[0].text), operator_of(e->kind),
                            STR_ARG(a[1].text));
    }
}

static str node_text(struct oracle_code *c, const struct expr *e, const struct oracle_operand *a,
                     bool exact) {
    switch (e->kind) {
    case EXPR_NOT:
    case EXPR_AND:
    case EXPR_OR:
        return logic_text(c, e, a, exact);
    case EXPR_EQ:
    case EXPR_NE:
    case EXPR_LT:
    case EXPR_LE:
    case EXPR_GT:
    case EXPR_GE:
        return compare_text(c, e, a, exact);
    default:
        break;
    }
    if (exact)
        return plain_node(c, e, a);
    if (e->kind == EXPR_IF)
        return call_text(c, "", "choose", a, 3, S(""));
    if (e->kind == EXPR_CALL)
        return call_text(c, "value_", function_name(e->function), a, e->nargs, settled_as(c, e));
    return call_text(c, "", value_node(e->kind), a, e->nargs, settled_as(c, e));
}

static struct oracle_operand put_node(struct oracle_code *c, const struct expr *e) {
    struct oracle_operand a[3] = {{{0}, false}};
    bool checked = c->checked, exact = c->plain || oracle_exact(c->x->t, e, false);
    for (size_t i = 0; i < e->nargs && i < 3; i++) {
        c->checked = checked || (e->kind == EXPR_IF && i > 0);
        a[i] = oracle_put_value(c, e->args[i], !(e->kind == EXPR_IF && i == 0) && operand_real(e));
    }
    c->checked = checked;
    return operand(c, exact, node_text(c, e, a, exact));
}

static struct oracle_operand put_literal(struct oracle_code *c, const struct expr *e) {
    str text = oracle_number(c->x, e->integral ? (double)e->integer : e->number);
    if (c->plain || oracle_exact(c->x->t, e, false))
        return ready(text);
    return operand(c, false, arena_printf(c->x->a, "literal(%.*s)", STR_ARG(text)));
}

static struct oracle_operand put_as_it_is(struct oracle_code *c, const struct expr *e) {
    switch (e->kind) {
    case EXPR_NUMBER:
        return put_literal(c, e);
    case EXPR_READ:
        return put_read(c, e, NULL);
    case EXPR_PAD:
        return put_read(c, e->args[0], e->args[1]);
    case EXPR_REDUCE:
        return put_reduce(c, e);
    default:
        break;
    }
    if (pattern_is_pure(e))
        return operand(
            c, true, arena_printf(c->x->a, "(double)%.*s", STR_ARG(oracle_integer(c->x, c->s, e))));
    return put_node(c, e);
}

struct oracle_operand oracle_put_value(struct oracle_code *c, const struct expr *e, bool real) {
    struct oracle_operand o = put_as_it_is(c, e);
    if (e->factor && !o.exact && !c->plain && c->x->t->accuracy != ACCURACY_FP32)
        return operand(c, false, arena_printf(c->x->a, "rounded(%.*s)", STR_ARG(o.text)));
    if (!real || e->value_kind != VALUE_INT || c->plain || oracle_exact(c->x->t, e, true))
        return o;
    return operand(c, false, arena_printf(c->x->a, "to_real(%.*s)", STR_ARG(o.text)));
}
