/* Expressions as lines of text. Which operations exist, what they are called with and which of them
 * are exact follows spec/program.c node by node. */
#include "kernel/oracle_text.h"

#include "spec/pattern.h"
#include "spec/value.h"

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

/* name(a, b, c) of n texts. */
static str call_text(struct oracle_text *x, const char *prefix, const char *name, const str *a,
                     size_t n) {
    str s = arena_printf(x->a, "%s%s(", prefix, name);
    for (size_t i = 0; i < n; i++)
        s = arena_printf(x->a, "%.*s%s%.*s", STR_ARG(s), i ? ", " : "", STR_ARG(a[i]));
    return arena_printf(x->a, "%.*s)", STR_ARG(s));
}

static str integer_node(struct oracle_text *x, const struct expr *e, const str *a) {
    switch (e->kind) {
    case EXPR_NEG:
        return arena_printf(x->a, "(-%.*s)", STR_ARG(a[0]));
    case EXPR_NOT:
        return arena_printf(x->a, "(!%.*s)", STR_ARG(a[0]));
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        return call_text(x, "", e->kind == EXPR_MOD ? "floormod" : "floordiv", a, 2);
    case EXPR_IF:
        return arena_printf(x->a, "(%.*s ? %.*s : %.*s)", STR_ARG(a[0]), STR_ARG(a[1]),
                            STR_ARG(a[2]));
    case EXPR_CALL:
        return call_text(x, "integer_", function_info(e->function)->name, a, e->nargs);
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

/* How a result is settled, by its names in value.h. */
static str settling_text(const struct oracle_code *c, const struct expr *e) {
    static const struct {
        int bit;
        const char *name;
    } names[] = {
#define NAME(bit) {bit, #bit}
        NAME(SETTLE_INTEGER), NAME(SETTLE_TRUTH), NAME(SETTLE_ROOT), NAME(SETTLE_REGROUPS),
        NAME(SETTLE_FACTORS), NAME(POLE_DIVISOR), NAME(POLE_ZERO),   NAME(POLE_MINUS_ONE),
#undef NAME
    };
    int how = pattern_settling(c->x->t, e) | (c->root == e ? SETTLE_ROOT : 0);
    str s = S("");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (how & names[i].bit)
            s = arena_printf(c->x->a, "%.*s%s%s", STR_ARG(s), s.n ? " | " : "", names[i].name);
    return s.n ? s : S("0");
}

/* An operation of value.h as it is settled. */
static str settled_text(struct oracle_code *c, const struct expr *e, str operation, const str *a) {
    str settle[5] = {operation, settling_text(c, e)};
    for (size_t i = 0; i < e->nargs; i++)
        settle[2 + i] = a[i];
    return call_text(c->x, "", "settle", settle, 2 + e->nargs);
}

static str rules_text(const struct expr *e) {
    return e->value_kind == VALUE_INT ? S("integer_rules(RULES)") : S("RULES");
}

/* An operator or a function of values, by its name in value.h. */
static str value_text(struct oracle_code *c, const struct expr *e, const str *a) {
    static const char *const names[] = {
        [EXPR_NEG] = "neg", [EXPR_ADD] = "add",           [EXPR_SUB] = "sub", [EXPR_MUL] = "mul",
        [EXPR_DIV] = "div", [EXPR_FLOORDIV] = "floordiv", [EXPR_MOD] = "mod"};
    bool call = e->kind == EXPR_CALL;
    str arguments[4] = {rules_text(e)};
    for (size_t i = 0; i < e->nargs; i++)
        arguments[1 + i] = a[i];
    return settled_text(c, e,
                        call_text(c->x, "value_",
                                  call ? function_info(e->function)->name : names[e->kind],
                                  arguments, 1 + e->nargs),
                        a);
}

/* The value itself, then whether it may go the other way. */
static str compare_text(struct oracle_code *c, const struct expr *e, const struct oracle_operand *o,
                        const str *a, bool exact) {
    bool truths = e->args[0]->value_kind == VALUE_BOOL;
    str holds = arena_printf(c->x->a, "%.*s%s %s %.*s%s", STR_ARG(a[0]), o[0].exact ? "" : ".v",
                             operator_of(e->kind), STR_ARG(a[1]), o[1].exact ? "" : ".v");
    if (exact)
        return arena_printf(c->x->a, "%.*s ? 1.0 : 0.0", STR_ARG(holds));
    const str arguments[] = {S("RULES"), holds, truths ? S("true") : S("false"), a[0], a[1]};
    return settled_text(c, e, call_text(c->x, "", "value_compared", arguments, 5), a);
}

static str logic_text(struct oracle_code *c, const struct expr *e, const str *a, bool exact) {
    if (!exact)
        return call_text(c->x, "value_",
                         e->kind == EXPR_NOT   ? "not"
                         : e->kind == EXPR_AND ? "and"
                                               : "or",
                         a, e->nargs);
    if (e->kind == EXPR_NOT)
        return arena_printf(c->x->a, "%.*s != 0 ? 0.0 : 1.0", STR_ARG(a[0]));
    return arena_printf(c->x->a, "%.*s != 0 %s %.*s != 0 ? 1.0 : 0.0", STR_ARG(a[0]),
                        operator_of(e->kind), STR_ARG(a[1]));
}

/* Of doubles: what is exact of exact operands, and everything in definitions. */
static str plain_node(struct oracle_text *x, const struct expr *e, const str *a) {
    switch (e->kind) {
    case EXPR_CALL:
        return call_text(x, "function_", function_info(e->function)->name, a, e->nargs);
    case EXPR_NEG:
        return arena_printf(x->a, "-%.*s", STR_ARG(a[0]));
    case EXPR_IF:
        return arena_printf(x->a, "%.*s != 0 ? %.*s : %.*s", STR_ARG(a[0]), STR_ARG(a[1]),
                            STR_ARG(a[2]));
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        return arena_printf(x->a, "value_%s(RULES, %.*s, %.*s).v",
                            e->kind == EXPR_MOD ? "mod" : "floordiv", STR_ARG(a[0]), STR_ARG(a[1]));
    default:
        return arena_printf(x->a, "%.*s %s %.*s", STR_ARG(a[0]), operator_of(e->kind),
                            STR_ARG(a[1]));
    }
}

static str node_text(struct oracle_code *c, const struct expr *e, const struct oracle_operand *o,
                     bool exact) {
    const str a[3] = {o[0].text, o[1].text, o[2].text};
    if (e->kind >= EXPR_EQ && e->kind <= EXPR_GE)
        return compare_text(c, e, o, a, exact);
    if (e->kind == EXPR_NOT || e->kind == EXPR_AND || e->kind == EXPR_OR)
        return logic_text(c, e, a, exact);
    if (exact)
        return plain_node(c->x, e, a);
    return e->kind == EXPR_IF ? call_text(c->x, "", "value_if", a, 3) : value_text(c, e, a);
}

static struct oracle_operand put_node(struct oracle_code *c, const struct expr *e) {
    struct oracle_operand a[3] = {{{0}, false}};
    bool checked = c->checked, exact = c->plain || oracle_exact(c->x->t, e, false);
    for (size_t i = 0; i < e->nargs && i < 3; i++) {
        c->checked = checked || (e->kind == EXPR_IF && i > 0);
        a[i] = oracle_put_value(c, e->args[i],
                                !(e->kind == EXPR_IF && i == 0) && pattern_wants_real(e));
    }
    c->checked = checked;
    return operand(c, exact, node_text(c, e, a, exact));
}

static struct oracle_operand put_literal(struct oracle_code *c, const struct expr *e) {
    str text = oracle_number(c->x, e->integral ? (double)e->integer : e->number);
    if (c->plain || oracle_exact(c->x->t, e, false))
        return ready(text);
    return operand(c, false, arena_printf(c->x->a, "value_literal(RULES, %.*s)", STR_ARG(text)));
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
        return operand(c, false,
                       arena_printf(c->x->a, "value_factor(RULES, %.*s)", STR_ARG(o.text)));
    if (!real || e->value_kind != VALUE_INT || c->plain || oracle_exact(c->x->t, e, true))
        return o;
    return operand(c, false, arena_printf(c->x->a, "value_to_real(RULES, %.*s)", STR_ARG(o.text)));
}
