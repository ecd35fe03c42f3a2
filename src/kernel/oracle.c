/* Writes the oracle's text: what the two compilers share, what is the same for every task
 * (assets/oracle), and the task's own functions in the order in which they use each other.
 *
 * Expressions become straight lines of `const value v3 = add(v1, v2);`, one operation each, equal
 * ones once; reductions become functions of their own. Names of the task get an underscore (x_) or
 * a prefix, so that none meets a word of CUDA. */
#include "kernel/oracle.h"

#include "base/asset.h"
#include "base/template.h"
#include "kernel/oracle_plan.h"
#include "spec/bind.h"
#include "spec/pattern.h"
#include "spec/scalar.h"
#include "spec/value.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oracle_text {
    const struct task *t;
    struct oracle_plan plan;
    struct buf *out;
    struct arena *a; /* of names and short texts */
    bool failed;     /* err says why */
    struct err *err;
};

/* A line that has been written. */
struct oracle_line {
    str name, text;
};

/* The body of one function, or of its innermost loop. */
struct oracle_code {
    struct oracle_text *x;
    const struct statement *s;
    bool plain;              /* plain doubles: definitions and conditions of inputs */
    bool checked;            /* reads may leave their tensors */
    const struct expr *root; /* whose result is stored */
    int indent;
    struct oracle_line *lines;
    size_t nlines, cap;
};

/* What an operand is called; `exact`: it is a double, otherwise a value (plain: always double). */
struct oracle_operand {
    str text;
    bool exact;
};

static struct oracle_operand oracle_put_value(struct oracle_code *c, const struct expr *e,
                                              bool real);
static struct oracle_operand oracle_put_plain_reduce(struct oracle_code *c, const struct expr *e);
static void oracle_put_products(struct oracle_text *x, size_t k);
static void oracle_put_block_kernel(struct oracle_text *x, size_t k);

/* ---- expressions as lines of text ----
 *
 * Which operations exist, what they are called with and which of them are exact follows
 * spec/program.c node by node. */

/* ---- short texts ---- */

/* A double so that it reads back as itself. */
static str oracle_number(struct oracle_text *x, double v) {
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

/* "DTYPE_F32". */
static const char *oracle_dtype(enum dtype t) {
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

static str oracle_variable(struct oracle_text *x, const struct statement *s, size_t var) {
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

static str oracle_parameters(struct oracle_text *x, const struct oracle_step *p) {
    return axes_text(x, p, "int64_t ");
}

/* ", int64_t i_, int64_t j_" and ", i_, j_" of an array's axes. */
static str oracle_arguments(struct oracle_text *x, const struct oracle_step *p) {
    return axes_text(x, p, "");
}

/* A comment with the part of the task that a function is about. */
static void oracle_put_source(struct oracle_text *x, size_t at, size_t len) {
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

/* An integer expression over indices and sizes, as C. */
static str oracle_integer(struct oracle_text *x, const struct statement *s, const struct expr *e) {
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

static struct oracle_code oracle_code_begin(struct oracle_text *x, const struct statement *s,
                                            bool plain, int indent) {
    return (struct oracle_code){.x = x, .s = s, .plain = plain, .indent = indent};
}

static void oracle_code_end(struct oracle_code *c) {
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

/* Its elements are read from memory, as doubles, and padded_x reads beyond its edges. */
static bool oracle_is_loaded(const struct tensor *t) {
    return tensor_is_input(t) && t->role != TENSOR_INOUT && t->dtype != DTYPE_F64 && t->rank > 0;
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

/* Writes the lines that compute it; real: converted when it is an integer. */
static struct oracle_operand oracle_put_value(struct oracle_code *c, const struct expr *e,
                                              bool real) {
    struct oracle_operand o = put_as_it_is(c, e);
    if (e->factor && (!o.exact || e->loses) && !c->plain && c->x->t->accuracy != ACCURACY_FP32)
        return operand(c, false,
                       arena_printf(c->x->a, "value_factor(RULES, %.*s)", STR_ARG(o.text)));
    if (!real || e->value_kind != VALUE_INT || c->plain || oracle_exact(c->x->t, e, true))
        return o;
    return operand(c, false, arena_printf(c->x->a, "value_to_real(RULES, %.*s)", STR_ARG(o.text)));
}

/* ---- reductions: loops over terms, and the kernels that make their results; for reduction k ----
 *
 *     fold_k       how its terms are folded
 *     terms_k      adds some of the terms of one result to a row
 *     look_k       … of a contraction, where they came to something odd
 *     reduced_k    one result: from memory or, where it has none, from all its terms
 *     oracle_reduce_k, oracle_scan_k    make all results
 *
 * A definition's reductions are plain sums in order, and their kernels oracle_define_k. */

static const char *const op_names[REDUCTION_COUNT] = {
    [REDUCTION_SUM] = "REDUCTION_SUM",       [REDUCTION_PROD] = "REDUCTION_PROD",
    [REDUCTION_MAX] = "REDUCTION_MAX",       [REDUCTION_MIN] = "REDUCTION_MIN",
    [REDUCTION_MEAN] = "REDUCTION_MEAN",     [REDUCTION_ARGMAX] = "REDUCTION_ARGMAX",
    [REDUCTION_ARGMIN] = "REDUCTION_ARGMIN",
};

static bool is_arg(const struct reduce *r) {
    return r->op == REDUCTION_ARGMAX || r->op == REDUCTION_ARGMIN;
}

/* Other indices may be as good as the one chosen, and nobody asks about them later. */
static bool wants_far(const struct oracle_step *p) {
    return is_arg(p->e->reduce) && !p->exact && !p->index;
}

/* ---- loops ---- */

static str bound(struct oracle_code *c, const struct expr *e) {
    return oracle_integer(c->x, c->s, e);
}

/* Where term number `first` is, the last variable running fastest, and how many are `left`. Only of
 * fixed bounds. */
static void oracle_put_first_term(struct oracle_text *x, const struct oracle_step *p) {
    const struct reduce *r = p->e->reduce;
    buf_puts(x->out, S("    int64_t terms = 1, rest = first;\n"));
    for (size_t k = r->nvars; k-- > 0;) {
        str name = oracle_variable(x, p->s, r->vars[k].var);
        buf_printf(x->out,
                   "    const int64_t %.*slo = %.*s, %.*shi = %.*s, %.*sn = %.*shi - %.*slo;\n"
                   "    int64_t %.*s = %.*slo + rest %% integer_maximum(%.*sn, 1);\n"
                   "    rest /= integer_maximum(%.*sn, 1);\n"
                   "    terms *= integer_maximum(%.*sn, 0);\n",
                   STR_ARG(name), STR_ARG(oracle_integer(x, p->s, r->vars[k].lo)), STR_ARG(name),
                   STR_ARG(oracle_integer(x, p->s, r->vars[k].hi)), STR_ARG(name), STR_ARG(name),
                   STR_ARG(name), STR_ARG(name), STR_ARG(name), STR_ARG(name), STR_ARG(name),
                   STR_ARG(name));
    }
    buf_puts(x->out, S("    left = first < terms ? integer_minimum(left, terms - first) : 0;\n"));
}

/* Opens the loops; fixed: they go on from where oracle_put_first_term left the variables, for
 * `terms` terms. */
static void put_loops(struct oracle_code *c, const struct reduce *r, bool fixed) {
    struct buf *out = c->x->out;
    for (size_t k = 0; k < r->nvars; k++) {
        str name = oracle_variable(c->x, c->s, r->vars[k].var), inner = {0};
        str lo = bound(c, r->vars[k].lo), hi = bound(c, r->vars[k].hi);
        if (fixed && k + 1 < r->nvars)
            inner = oracle_variable(c->x, c->s, r->vars[k + 1].var);
        buf_printf(out, "%*sfor (", c->indent, "");
        if (!fixed)
            buf_printf(out, "int64_t %.*s = %.*s", STR_ARG(name), STR_ARG(lo));
        buf_printf(out, "; %.*s < %.*s; %.*s++", STR_ARG(name), STR_ARG(hi), STR_ARG(name));
        if (inner.n)
            buf_printf(out, ", %.*s = %.*slo", STR_ARG(inner), STR_ARG(inner));
        buf_puts(out, S(") {\n"));
        c->indent += 4;
    }
    if (fixed)
        buf_printf(out, "%*sif (left-- == 0)\n%*sgoto end;\n", c->indent, "", c->indent + 4, "");
}

static void close_loops(struct oracle_code *c, const struct reduce *r) {
    for (size_t k = 0; k < r->nvars; k++) {
        c->indent -= 4;
        buf_printf(c->x->out, "%*s}\n", c->indent, "");
    }
}

/* ---- terms ---- */

struct term {
    struct oracle_operand guard, value, factor[2];
};

static void put_guard(struct oracle_code *c, const struct oracle_operand *g, const char *leave) {
    if (g->exact)
        buf_printf(c->x->out, "%*sif (!(%.*s != 0))\n", c->indent, "", STR_ARG(g->text));
    else
        buf_printf(c->x->out, "%*sif (!(%.*s.v != 0 || %.*s.e > 0))\n", c->indent, "",
                   STR_ARG(g->text), STR_ARG(g->text));
    buf_printf(c->x->out, "%*s%s;\n", c->indent + 4, "", leave);
}

/* Guard and body; what the guard rejects for certain leaves by `leave`. */
static struct term put_term(struct oracle_code *c, const struct oracle_step *p, const char *leave) {
    const struct reduce *r = p->e->reduce;
    struct term t = {.guard = {S("1.0"), true}};
    c->checked = p->checked;
    if (r->guard) {
        t.guard = oracle_put_value(c, r->guard, false);
        put_guard(c, &t.guard, leave);
        c->checked = true;
    }
    if (p->exact_product)
        for (int k = 0; k < 2; k++)
            t.factor[k] = oracle_put_value(c, p->e->args[0]->args[k], true);
    else
        t.value = oracle_put_value(c, p->e->args[0], !p->fold.integer);
    return t;
}

/* A condition: a pad of the term reads beyond an edge, or only data say where it reads. As deep as
 * the tree. */
static str beyond_text(struct oracle_code *c, const struct expr *e, str sofar) {
    struct oracle_text *x = c->x;
    if (e->kind == EXPR_REDUCE)
        return sofar;
    if (e->kind == EXPR_PAD) {
        const struct expr *read = e->args[0];
        str places = S("");
        bool pure = true;
        for (size_t k = 0; k < read->nargs && pure; k++) {
            pure = pattern_is_pure(read->args[k]);
            if (pure)
                places = arena_printf(x->a, "%.*s, %.*s", STR_ARG(places),
                                      STR_ARG(oracle_integer(x, c->s, read->args[k])));
        }
        if (!pure)
            return S("true");
        sofar = arena_printf(x->a, "%.*s || !inside_%.*s(o%.*s)", STR_ARG(sofar),
                             STR_ARG(x->t->tensors[read->ref].name), STR_ARG(places));
    }
    for (size_t k = 0; k < e->nargs; k++)
        sofar = beyond_text(c, e->args[k], sofar);
    return sofar;
}

static void put_add(struct oracle_code *c, const struct oracle_step *p, const struct term *t) {
    const str none = S("false");
    str beyond = p->partial ? beyond_text(c, p->e->args[0], none) : none;
    str at = oracle_variable(c->x, c->s, p->e->reduce->vars[0].var), value = t->value.text;
    if (p->exact_product)
        value = arena_printf(c->x->a, "%.*s, %.*s", STR_ARG(t->factor[0].text),
                             STR_ARG(t->factor[1].text));
    if (p->product) {
        buf_printf(c->x->out, "%*slook_at_product(seen, s, f, %.*s, %.*s);\n", c->indent, "",
                   STR_ARG(value), STR_ARG(beyond));
        return;
    }
    if (p->exact_product)
        value = arena_printf(c->x->a, "summed_product(%.*s)", STR_ARG(value));
    if (!str_eq(beyond, none))
        value =
            arena_printf(c->x->a, "padded_term(f, %.*s, %.*s)", STR_ARG(value), STR_ARG(beyond));
    buf_printf(c->x->out, "%*schain_add(&c, &r.before, &f, %.*s, %.*s, (double)%.*s);\n", c->indent,
               "", STR_ARG(value), STR_ARG(t->guard.text), STR_ARG(at));
}

/* ---- functions ---- */

static void put_fold(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    const struct fold *f = &p->fold;
    buf_printf(x->out,
               "__device__ static inline fold fold_%zu(const oracle_world *o) {\n"
               "    fold f = {%s, 0, %a, %a, %a, %a, %a, %a};\n",
               k, op_names[p->e->reduce->op], f->relative2, f->unit2, f->least2, f->truncation,
               f->worst, f->most);
}

/* Every content that the terms read: whether it is finite. */
static void put_odd(struct oracle_text *x, const struct expr *e) {
    const struct task *t = x->t;
    const struct oracle_step *inner = e->kind == EXPR_REDUCE ? oracle_plan_find(&x->plan, e) : NULL;
    if (e->kind == EXPR_READ)
        buf_printf(x->out, " | o->odd[%zu]",
                   t->tensors[e->ref].role == TENSOR_LET && x->plan.let_step[e->ref] >= 0
                       ? t->ntensors + (size_t)x->plan.let_step[e->ref]
                       : e->ref);
    if (inner) {
        buf_printf(x->out, " | o->odd[%zu]", t->ntensors + (size_t)(inner - x->plan.steps));
        return;
    }
    for (size_t k = 0; k < e->nargs; k++)
        put_odd(x, e->args[k]);
}

static void put_fold_function(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    put_fold(x, k);
    if (p->partial) {
        buf_puts(x->out, S("    f.unjudged = 0"));
        put_odd(x, p->e->args[0]);
        if (p->e->reduce->guard)
            put_odd(x, p->e->reduce->guard);
        buf_puts(x->out, S(";\n"));
    }
    buf_puts(x->out, S("    return f;\n}\n"));
}

/* The loops and what they add, up to the end of a function. */
static void put_all_terms(struct oracle_text *x, const struct oracle_step *p) {
    struct oracle_code c = oracle_code_begin(x, p->s, false, 4);
    if (p->fixed)
        oracle_put_first_term(x, p);
    put_loops(&c, p->e->reduce, p->fixed);
    struct term t = put_term(&c, p, "continue");
    put_add(&c, p, &t);
    close_loops(&c, p->e->reduce);
    if (p->fixed)
        buf_puts(x->out, S("end:;\n"));
    oracle_code_end(&c);
}

/* Once more through the terms of a chain that came to something odd. */
static void put_look(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    buf_printf(x->out,
               "__device__ __noinline__ static int look_%zu(const oracle_world *o%.*s, int64_t "
               "first, int64_t left, int seen) {\n"
               "    const fold f = fold_%zu(o);\n    double s = 0;\n",
               k, STR_ARG(oracle_parameters(x, p)), k);
    put_all_terms(x, p);
    buf_puts(x->out, S("    return seen;\n}\n"));
}

/* ---- reductions by index ---- */

static size_t axis_of(const struct oracle_step *p, size_t var) {
    size_t i = 0;
    while (p->axis[i] != var)
        i++;
    return i;
}

static str axis_variable(struct oracle_text *x, const struct oracle_step *p, size_t axis) {
    return oracle_variable(x, p->s, p->axis[axis]);
}

/* The number of a list: by the shared axes, then those that are equated. `names`: of the latter. */
static void put_list_number(struct oracle_text *x, const struct oracle_step *p, const char *name) {
    for (size_t i = 0; i < p->naxes; i++)
        if (p->by.shared >> p->axis[i] & 1)
            buf_printf(x->out, "    %s = %s * a.n[%zu] + (%.*s - a.lo[%zu]);\n", name, name, i,
                       STR_ARG(axis_variable(x, p, i)), i);
    for (size_t k = 0; k < p->by.npins; k++) {
        size_t i = axis_of(p, p->by.pin[k].var);
        buf_printf(x->out, "    %s = %s * a.n[%zu] + (%.*s - a.lo[%zu]);\n", name, name, i,
                   STR_ARG(axis_variable(x, p, i)), i);
    }
}

/* The variables of term number `rest`, as oracle_put_first_term counts them. */
static void put_term_variables(struct oracle_text *x, const struct oracle_step *p, int indent) {
    const struct reduce *r = p->e->reduce;
    for (size_t k = r->nvars; k-- > 0;) {
        str name = oracle_variable(x, p->s, r->vars[k].var);
        str lo = oracle_integer(x, p->s, r->vars[k].lo),
            hi = oracle_integer(x, p->s, r->vars[k].hi);
        buf_printf(
            x->out,
            "%*sconst int64_t %.*s = %.*s + rest %% (%.*s - %.*s);\n%*srest /= %.*s - %.*s;\n",
            indent, "", STR_ARG(name), STR_ARG(lo), STR_ARG(hi), STR_ARG(lo), indent, "",
            STR_ARG(hi), STR_ARG(lo));
    }
}

/* Which list each term belongs to. A number that carries an error may belong to others, too. */
static void put_keys_kernel(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    struct oracle_code c = oracle_code_begin(x, p->s, false, 4);
    c.checked = true;
    buf_printf(x->out,
               "extern \"C\" __global__ void oracle_keys_%zu(const __grid_constant__ oracle_op op) "
               "{\n    const oracle_world *o = op.world;\n"
               "    const oracle_array a = o->array[%zu];\n"
               "    const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;\n"
               "    if (n >= op.count)\n        return;\n"
               "    int64_t item = n / a.terms, rest = n %% a.terms, list = 0;\n",
               k, k);
    for (size_t i = p->naxes; i-- > 0;)
        if (p->by.shared >> p->axis[i] & 1)
            buf_printf(
                x->out,
                "    const int64_t %.*s = a.lo[%zu] + item %% a.n[%zu];\n    item /= a.n[%zu];\n",
                STR_ARG(axis_variable(x, p, i)), i, i, i);
    put_term_variables(x, p, 4);
    buf_puts(x->out, S("    bool inside_all = true;\n"));
    for (size_t i = 0; i < p->by.npins; i++) {
        size_t axis = axis_of(p, p->by.pin[i].var);
        struct oracle_operand key = oracle_put_value(&c, p->by.pin[i].key, false);
        str name = axis_variable(x, p, axis), v = key.text;
        if (!key.exact) {
            buf_printf(x->out, "    if (%.*s.e != 0)\n        *(int64_t *)a.doubt = 1;\n",
                       STR_ARG(v));
            v = arena_printf(x->a, "%.*s.v", STR_ARG(v));
        }
        buf_printf(
            x->out,
            "    const bool inside_%zu = %.*s == floor(%.*s) && %.*s >= (double)a.lo[%zu] && "
            "%.*s < (double)(a.lo[%zu] + a.n[%zu]);\n"
            "    const int64_t %.*s = inside_%zu ? (int64_t)%.*s : a.lo[%zu];\n"
            "    inside_all &= inside_%zu;\n",
            i, STR_ARG(v), STR_ARG(v), STR_ARG(v), axis, STR_ARG(v), axis, axis, STR_ARG(name), i,
            STR_ARG(v), axis, i);
    }
    put_list_number(x, p, "list");
    buf_puts(x->out,
             S("    ((uint32_t *)op.out)[n] = (uint32_t)(inside_all ? list : op.terms);\n}\n"));
    oracle_code_end(&c);
}

/* The terms of the result's own list. */
static void put_listed_terms(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    struct oracle_code c = oracle_code_begin(x, p->s, false, 12);
    buf_printf(x->out,
               "    const oracle_array &a = o->array[%zu];\n"
               "    if (a.start && *a.doubt == 0) {\n    int64_t list = 0;\n",
               k);
    put_list_number(x, p, "list");
    buf_puts(x->out, S("        for (uint32_t at = a.start[list]; at < a.start[list + 1]; at++) {\n"
                       "            int64_t rest = a.order[at] % a.terms;\n"));
    put_term_variables(x, p, 12);
    struct term t = put_term(&c, p, "continue");
    put_add(&c, p, &t);
    buf_puts(x->out, S("        }\n        r.c = c;\n        return;\n    }\n"));
    oracle_code_end(&c);
}

static void put_terms(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    if (p->product) {
        put_look(x, k);
        oracle_put_products(x, k);
        return;
    }
    buf_printf(x->out,
               "template <int LEVELS>\n__device__ __noinline__ static void terms_%zu(const "
               "oracle_world *o, row_of<LEVELS> &__restrict__ r%.*s, int64_t first, int64_t left) "
               "{\n"
               "    const fold f = fold_%zu(o);\n    chain c = r.c;\n",
               k, STR_ARG(oracle_parameters(x, p)), k);
    if (p->listed)
        put_listed_terms(x, k);
    put_all_terms(x, p);
    buf_puts(x->out, S("    r.c = c;\n}\n"));
    if (p->uncertain)
        oracle_put_products(x, k);
}

/* How far away another index is that is as good as the one chosen. */
static void put_far(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    struct oracle_code c = oracle_code_begin(x, p->s, false, 4);
    str at = oracle_variable(x, p->s, p->e->reduce->vars[0].var);
    buf_printf(x->out,
               "__device__ __noinline__ static double far_%zu(const oracle_world *o%.*s, value "
               "best, double at) {\n    double far = 0;\n",
               k, STR_ARG(oracle_parameters(x, p)));
    put_loops(&c, p->e->reduce, false);
    struct term t = put_term(&c, p, "continue");
    buf_printf(
        x->out,
        "%*sif (fold_ties(RULES.limits.worst, best, %.*s))\n%*sfar = fmax(far, fabs((double)%.*s "
        "- at));\n",
        c.indent, "", STR_ARG(t.value.text), c.indent + 4, "", STR_ARG(at));
    close_loops(&c, p->e->reduce);
    buf_puts(x->out, S("    return far;\n}\n"));
    oracle_code_end(&c);
}

/* The term at an index that somebody else chose. */
static void put_tie(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    const struct reduce_var *v = &p->e->reduce->vars[0];
    struct oracle_code c = oracle_code_begin(x, p->s, false, 4);
    str at = oracle_variable(x, p->s, v->var);
    buf_printf(x->out,
               "__device__ static bool tie_%zu(const oracle_world *o%.*s, value best, double got) "
               "{\n    const int64_t %.*s = (int64_t)got;\n"
               "    if (!(got == (double)%.*s && %.*s >= %.*s && %.*s < %.*s))\n"
               "        return false;\n",
               k, STR_ARG(oracle_parameters(x, p)), STR_ARG(at), STR_ARG(at), STR_ARG(at),
               STR_ARG(bound(&c, v->lo)), STR_ARG(at), STR_ARG(bound(&c, v->hi)));
    struct term t = put_term(&c, p, "return false");
    buf_printf(x->out, "    return fold_ties(RULES.limits.worst, best, %.*s);\n}\n",
               STR_ARG(t.value.text));
    oracle_code_end(&c);
}

/* The element of an array at its axes; `otherwise` where it does not reach. */
static void put_array_place(struct oracle_text *x, size_t k, const char *otherwise) {
    const struct oracle_step *p = &x->plan.steps[k];
    buf_printf(x->out, "    const oracle_array &a = o->array[%zu];\n    int64_t i = 0;\n", k);
    for (size_t i = 0; i < p->naxes; i++) {
        str name = oracle_variable(x, p->s, p->axis[i]);
        buf_printf(x->out,
                   "    if (!inside(%.*s - a.lo[%zu], a.n[%zu]))\n        return %s;\n"
                   "    i += (%.*s - a.lo[%zu]) * a.stride[%zu];\n",
                   STR_ARG(name), i, i, otherwise, STR_ARG(name), i, i);
    }
}

/* Of an argmax that is an output, `best` as well. */
static void put_reduced(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    bool keeps = p->index && !p->exact;
    str arguments = oracle_arguments(x, p);
    buf_printf(x->out, "__device__ static value reduced_%zu(const oracle_world *o%.*s%s) {\n", k,
               STR_ARG(oracle_parameters(x, p)), keeps ? ", value *best" : "");
    if (!p->always)
        buf_printf(x->out,
                   "    if (!o->array[%zu].value) {\n        const fold f = fold_%zu(o);\n"
                   "        row r;\n        row_start(r, f);\n"
                   "        terms_%zu(o, r%.*s, 0, NONE);\n",
                   k, k, k, STR_ARG(arguments));
    if (!p->always && keeps)
        buf_puts(x->out, S("        *best = value(r.c.sum, r.c.variance);\n"));
    if (!p->always && wants_far(p))
        buf_printf(x->out,
                   "        value d = chain_result(&r.c, &r.before, &f);\n        const double far "
                   "= far_%zu(o"
                   "%.*s, value(r.c.sum, r.c.variance), r.c.at);\n"
                   "        return value(d.v, d.e + far * far);\n    }\n",
                   k, STR_ARG(arguments));
    else if (!p->always)
        buf_puts(x->out, S("        return chain_result(&r.c, &r.before, &f);\n    }\n"));
    put_array_place(x, k, "undefined()");
    if (keeps)
        buf_puts(x->out, S("    *best = value(a.best[i], a.best[a.count + i]);\n"));
    buf_puts(x->out, S("    return element_at(a, i);\n}\n"));
}

/* ---- kernels ---- */

/* The indices along some axes of element number `rest`; prefix: their type, or what they are
 * members of. */
static void oracle_put_indices(struct oracle_text *x, const struct oracle_step *p, uint32_t axes,
                               const char *prefix, int indent) {
    for (size_t i = p->naxes; i-- > 0;)
        if (axes >> i & 1)
            buf_printf(x->out, "%*s%s%.*s = a.lo[%zu] + rest %% a.n[%zu];\n%*srest /= a.n[%zu];\n",
                       indent, "", prefix, STR_ARG(oracle_variable(x, p->s, p->axis[i])), i, i,
                       indent, "", i);
}

/* bounds: "__launch_bounds__(…) ", or nothing. */
static void oracle_put_kernel_head(struct oracle_text *x, const char *bounds, const char *name,
                                   size_t k) {
    buf_printf(
        x->out,
        "extern \"C\" __global__ void %soracle_%s_%zu(const __grid_constant__ oracle_op op) {\n"
        "    const oracle_world *o = op.world;\n    const oracle_array a = o->array[%zu];\n"
        "    const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;\n",
        bounds, name, k, k);
}

/* A thread a result, or a segment of its terms. */
static void put_reduce_kernel(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    if (p->listed)
        put_keys_kernel(x, k);
    str arguments = oracle_arguments(x, p);
    oracle_put_kernel_head(x, "", "reduce", k);
    buf_puts(x->out, S("    if (n >= a.count * op.segments)\n        return;\n"
                       "    const int64_t i = n / op.segments;\n    int64_t rest = i;\n"));
    oracle_put_indices(x, p, UINT32_MAX, "const int64_t ", 4);
    buf_printf(x->out,
               "    const fold f = fold_%zu(o);\n    row r;\n    row_start(r, f);\n"
               "    terms_%zu(o, r%.*s, n %% op.segments * op.terms, op.terms);\n",
               k, k, STR_ARG(arguments));
    buf_puts(x->out,
             S("    if (op.segments > 1) {\n"
               "        put_part((oracle_part *)op.out + n, r.c, r.before, f);\n"
               "        return;\n    }\n    value d = chain_result(&r.c, &r.before, &f);\n"));
    if (wants_far(p))
        buf_printf(x->out,
                   "    const double far = far_%zu(o%.*s, value(r.c.sum, r.c.variance), r.c.at);\n"
                   "    d.e += far * far;\n",
                   k, STR_ARG(arguments));
    buf_printf(x->out, "    put_result(a, &o->odd[%zu], i, d, value(r.c.sum, r.c.variance));\n}\n",
               x->t->ntensors + k);
}

/* The text that `put` writes, apart. */
static str taken_apart(struct oracle_text *x, const struct oracle_step *p,
                       void (*put)(struct oracle_text *x, const struct oracle_step *p)) {
    struct buf *out = x->out, apart;
    buf_init(&apart, ORACLE_MAX_UNIT);
    x->out = &apart;
    put(x, p);
    x->out = out;
    str text = arena_str(x->a, str_trim(buf_str(&apart)));
    buf_release(&apart);
    return text;
}

static void put_scan_term(struct oracle_text *x, const struct oracle_step *p) {
    struct oracle_code c = oracle_code_begin(x, p->s, false, 0);
    struct term t = put_term(&c, p, "break");
    put_add(&c, p, &t);
    oracle_code_end(&c);
}

/* The other axes, and what they contribute to the place of a result. */
static void put_scan_coordinates(struct oracle_text *x, const struct oracle_step *p) {
    uint32_t others = 0;
    for (size_t i = 0; i < p->naxes; i++)
        others |= (int)p->axis[i] == p->scanned ? 0 : UINT32_C(1) << i;
    oracle_put_indices(x, p, others, "const int64_t ", 0);
    for (size_t i = 0; i < p->naxes; i++)
        if (others >> i & 1)
            buf_printf(x->out, "place += (%.*s - a.lo[%zu]) * a.stride[%zu];\n",
                       STR_ARG(oracle_variable(x, p->s, p->axis[i])), i, i);
}

static void put_scan_kernel(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    const struct reduce_var *v = &p->e->reduce->vars[0];
    bool back = p->backwards;
    size_t axis = 0;
    str template, coordinates = taken_apart(x, p, put_scan_coordinates);
    while ((int)p->axis[axis] != p->scanned)
        axis++;
    str index = oracle_variable(x, p->s, p->axis[axis]), at = oracle_variable(x, p->s, v->var);
    const struct slot slots[] = {
        {"step", arena_printf(x->a, "%zu", k)},
        {"axis", arena_printf(x->a, "%zu", axis)},
        {"odd", arena_printf(x->a, "%zu", x->t->ntensors + k)},
        {"coordinates", coordinates.n ? coordinates : S("// a single row")},
        {"index", index},
        {"variable", at},
        {"moving", oracle_integer(x, p->s, back ? v->lo : v->hi)},
        {"fixed", oracle_integer(x, p->s, back ? v->hi : v->lo)},
        {"none_from", back ? S("last") : S("first")},
        {"none_while", arena_printf(x->a,
                                    back ? "%.*s >= first && %.*s + offset >= fixed"
                                         : "%.*s <= last && %.*s + offset <= fixed",
                                    STR_ARG(index), STR_ARG(index))},
        {"from", back ? S("fixed - 1") : S("fixed")},
        {"while",
         arena_printf(x->a, back ? "%.*s >= first + offset" : "%.*s < last + offset", STR_ARG(at))},
        {"next", back ? S("--") : S("++")},
        {"past", back ? S("") : S(" + 1")},
        {"term", taken_apart(x, p, put_scan_term)},
    };
    x->failed = x->failed || !asset_get(NULL, "oracle/scan.cu", x->a, &template, x->err) ||
                !template_render(S("oracle/scan.cu"), template, slots, sizeof slots / sizeof *slots,
                                 x->out, x->err);
}

/* ---- definitions ---- */

static void put_plain_loops(struct oracle_code *c, const struct expr *e) {
    const struct reduce *r = e->reduce;
    struct oracle_code in = oracle_code_begin(c->x, c->s, true, c->indent);
    put_loops(&in, r, false);
    if (r->guard) {
        struct oracle_operand g = oracle_put_value(&in, r->guard, false);
        put_guard(&in, &g, "continue");
    }
    struct oracle_operand v = oracle_put_value(&in, e->args[0], false);
    buf_printf(c->x->out, "%*splain_add(&f, %s, %.*s, (double)%.*s);\n", in.indent, "",
               op_names[r->op], STR_ARG(v.text),
               STR_ARG(oracle_variable(c->x, c->s, r->vars[0].var)));
    close_loops(&in, r);
    oracle_code_end(&in);
}

/* A definition's reduction that has no memory: the value, written in place. */
static struct oracle_operand oracle_put_plain_reduce(struct oracle_code *c, const struct expr *e) {
    struct oracle_text *x = c->x;
    str name = arena_printf(x->a, "sum%zu", e->at);
    buf_printf(x->out, "%*sdouble %.*s;\n%*s{\n", c->indent, "", STR_ARG(name), c->indent, "");
    c->indent += 4;
    buf_printf(x->out, "%*splain_fold f = plain_start(%s);\n", c->indent, "",
               op_names[e->reduce->op]);
    put_plain_loops(c, e);
    buf_printf(x->out, "%*s%.*s = plain_result(&f, %s);\n", c->indent, "", STR_ARG(name),
               op_names[e->reduce->op]);
    c->indent -= 4;
    buf_printf(x->out, "%*s}\n", c->indent, "");
    return (struct oracle_operand){name, true};
}

static void put_define(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    struct oracle_code c = oracle_code_begin(x, p->s, true, 4);
    buf_printf(x->out, "__device__ static double reduced_%zu(const oracle_world *o%.*s) {\n", k,
               STR_ARG(oracle_parameters(x, p)));
    put_array_place(x, k, "NAN");
    buf_puts(x->out, S("    return a.value[i];\n}\n"));
    oracle_put_kernel_head(x, "", "define", k);
    buf_puts(x->out, S("    if (n >= a.count)\n        return;\n    int64_t rest = n;\n"));
    oracle_put_indices(x, p, UINT32_MAX, "const int64_t ", 4);
    struct oracle_operand v = oracle_put_plain_reduce(&c, p->e);
    buf_printf(x->out, "    a.value[n] = %.*s;\n}\n", STR_ARG(v.text));
    oracle_code_end(&c);
}

static void oracle_put_step(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    oracle_put_source(x, p->e->at, p->e->len);
    if (p->kind == ORACLE_DEFINE) {
        put_define(x, k);
        return;
    }
    put_fold_function(x, k);
    if (p->scanned < 0)
        put_terms(x, k);
    if (wants_far(p))
        put_far(x, k);
    if (p->index && !p->exact)
        put_tie(x, k);
    put_reduced(x, k);
    if (p->scanned >= 0)
        put_scan_kernel(x, k);
    else
        put_reduce_kernel(x, k);
    if (p->rows * p->columns > 1)
        oracle_put_block_kernel(x, k);
}

/* ---- tensors: where elements lie, how inputs are made, and how all are read; for tensor x ----
 *
 *     at_x, inside_x    the place of an element, and whether there is one
 *     element_x         an element of an input, or of what inputs are defined from, made anew
 *     read_x            an element as the mathematics reads it
 *     padded_x          … or another value where there is none
 *
 * An inout tensor is read as it was before the run: its elements are made anew. */

static bool is_made(const struct tensor *t) {
    return tensor_is_input(t) || t->role == TENSOR_RAND;
}

/* "int64_t c0, int64_t c1", or "c0, c1", each behind a comma. */
static str coordinates(struct oracle_text *x, const struct tensor *t, const char *type) {
    str s = S("");
    for (size_t k = 0; k < t->rank; k++)
        s = arena_printf(x->a, "%.*s, %sc%zu", STR_ARG(s), type, k);
    return s;
}

static void oracle_put_places(struct oracle_text *x) {
    for (size_t i = 0; i < x->t->ntensors; i++) {
        const struct tensor *t = &x->t->tensors[i];
        str parameters = coordinates(x, t, "int64_t ");
        buf_printf(x->out,
                   "__device__ static inline int64_t at_%.*s(const oracle_world *o%.*s) {\n"
                   "    const oracle_tensor &t = o->tensor[%zu];\n    return 0",
                   STR_ARG(t->name), STR_ARG(parameters), i);
        for (size_t k = 0; k < t->rank; k++)
            buf_printf(x->out, k + 1 < t->rank ? " + c%zu * t.stride[%zu]" : " + c%zu", k, k);
        buf_printf(x->out,
                   ";\n}\n__device__ static inline bool inside_%.*s(const oracle_world *o%.*s) {\n"
                   "    const oracle_tensor &t = o->tensor[%zu];\n    return true",
                   STR_ARG(t->name), STR_ARG(parameters), i);
        for (size_t k = 0; k < t->rank; k++)
            buf_printf(x->out, " & inside(c%zu, t.extent[%zu])", k, k);
        buf_puts(x->out, S(";\n}\n"));
    }
}

/* ---- statements by element ---- */

/* From the last dimension to the first: one division each. */
static void oracle_put_coordinates(struct oracle_text *x, size_t tensor) {
    size_t rank = x->t->tensors[tensor].rank;
    if (rank > 1)
        buf_puts(x->out, S("    int64_t rest = i;\n"));
    for (size_t k = rank; k-- > 1;)
        buf_printf(x->out,
                   "    const int64_t c%zu = rest %% o->tensor[%zu].extent[%zu];\n"
                   "    rest /= o->tensor[%zu].extent[%zu];\n",
                   k, tensor, k, tensor, k);
    if (rank)
        buf_puts(x->out,
                 rank > 1 ? S("    const int64_t c0 = rest;\n") : S("    const int64_t c0 = i;\n"));
}

/* The statements that define a tensor, tried in turn at an element with coordinates c0, c1, …:
 * what `found` writes for each stands where its constants match. */
static void
oracle_put_dispatch(struct oracle_text *x, const struct statement *list, size_t n, size_t tensor,
                    void (*found)(struct oracle_text *x, size_t statement, str arguments)) {
    const struct tensor *t = &x->t->tensors[tensor];
    for (size_t i = 0; i < n; i++) {
        const struct statement *s = &list[i];
        str arguments = S(""), test = S("true");
        if (s->tensor != tensor)
            continue;
        for (size_t v = 0; v < s->nindex; v++)
            for (size_t k = 0; k < t->rank; k++)
                if (s->position[k] == (int)v)
                    arguments = arena_printf(x->a, "%.*s, c%zu", STR_ARG(arguments), k);
        for (size_t k = 0; k < t->rank; k++)
            if (s->position[k] < 0)
                test = arena_printf(x->a, "%.*s && c%zu == %.*s", STR_ARG(test), k,
                                    STR_ARG(oracle_integer(x, s, s->constant[k])));
        buf_printf(x->out, "    if (%.*s) {\n", STR_ARG(test));
        found(x, i, arguments);
        buf_puts(x->out, S("    }\n"));
    }
}

/* ---- inputs as they are made ---- */

static str left_parameters(struct oracle_text *x, const struct statement *s) {
    str p = S("");
    for (size_t v = 0; v < s->nindex; v++)
        p = arena_printf(x->a, "%.*s, int64_t %.*s_", STR_ARG(p), STR_ARG(s->index[v]));
    return p;
}

/* A function of the indices on the left side. */
static void put_plain_function(struct oracle_text *x, const char *name, size_t number,
                               const struct statement *s) {
    struct oracle_code c = oracle_code_begin(x, s, true, 4);
    oracle_put_source(x, s->at, s->len);
    buf_printf(x->out, "__device__ static double %s_%zu(const oracle_world *o%.*s) {\n", name,
               number, STR_ARG(left_parameters(x, s)));
    struct oracle_operand v = oracle_put_value(&c, s->body, false);
    buf_printf(x->out, "    return %.*s;\n}\n", STR_ARG(v.text));
    oracle_code_end(&c);
}

static void found_definition(struct oracle_text *x, size_t i, str arguments) {
    buf_printf(x->out, "        return source_computed(defined_%zu(o%.*s));\n", i,
               STR_ARG(arguments));
}

/* What source_value decides by, known here. */
static const char *drawn_as(const struct tensor *t) {
    char kind = dtype_info(t->dtype)->kind;
    bool own = t->role == TENSOR_RAND;
    if ((t->indexes && kind != 'f') || (own && t->dist.kind == DIST_RANDINT))
        return "held";
    if (kind == 'b' || (own && t->dist.kind == DIST_BERNOULLI))
        return "truth";
    return kind == 'f' ? "real" : "whole";
}

static void put_raw(struct oracle_text *x, size_t tensor) {
    const struct tensor *t = &x->t->tensors[tensor];
    if (t->dist.kind == DIST_DEFINED)
        for (size_t i = 0; i < x->t->ndefinitions; i++)
            if (x->t->definitions[i].tensor == tensor)
                put_plain_function(x, "defined", i, &x->t->definitions[i]);
    buf_printf(x->out, "__device__ static double raw_%.*s(const oracle_world *o, int64_t i) {\n",
               STR_ARG(t->name));
    if (t->dist.kind == DIST_DEFINED) {
        oracle_put_coordinates(x, tensor);
        oracle_put_dispatch(x, x->t->definitions, x->t->ndefinitions, tensor, found_definition);
        buf_puts(x->out, S("    return 0;\n}\n"));
    } else
        buf_printf(x->out, "    return source_%s(&o->source[%zu], i);\n}\n", drawn_as(t), tensor);
}

static bool assumes_zero(const struct task *t, size_t tensor, size_t a) {
    return t->assumptions[a].kind == ASSUME_ZERO && t->assumptions[a].tensor == tensor;
}

static bool is_assumed(const struct task *t, size_t tensor) {
    for (size_t a = 0; a < t->nassumptions; a++)
        if (t->assumptions[a].tensor == tensor)
            return true;
    return false;
}

/* The indices of an assumption stand at all dimensions. */
static void put_zeros(struct oracle_text *x, size_t tensor) {
    const struct task *t = x->t;
    for (size_t a = 0; a < t->nassumptions; a++) {
        const struct statement *s = &t->assumptions[a].s;
        if (!assumes_zero(t, tensor, a))
            continue;
        str arguments = S("");
        for (size_t v = 0; v < s->nindex; v++)
            for (size_t k = 0; k < t->tensors[tensor].rank; k++)
                if (s->position[k] == (int)v)
                    arguments = arena_printf(x->a, "%.*s, c%zu", STR_ARG(arguments), k);
        buf_printf(x->out, "    if (zero_%zu(o%.*s) != 0)\n        return 0;\n", a,
                   STR_ARG(arguments));
    }
}

static void put_element(struct oracle_text *x, size_t tensor) {
    const struct task *t = x->t;
    const struct tensor *own = &t->tensors[tensor];
    char kind = dtype_info(own->dtype)->kind;
    put_raw(x, tensor);
    for (size_t a = 0; a < t->nassumptions; a++)
        if (assumes_zero(t, tensor, a))
            put_plain_function(x, "zero", a, &t->assumptions[a].s);
    buf_printf(
        x->out,
        "__device__ __noinline__ static double element_%.*s(const oracle_world *o, int64_t i) {\n",
        STR_ARG(own->name));
    if (!is_assumed(t, tensor)) {
        buf_printf(x->out, "    return source_stored(&o->source[%zu], '%c', raw_%.*s(o, i));\n}\n",
                   tensor, kind, STR_ARG(own->name));
        return;
    }
    oracle_put_coordinates(x, tensor);
    put_zeros(x, tensor);
    if (own->rank)
        buf_printf(x->out,
                   "    if (o->promise[%zu].symmetric)\n"
                   "        i = promise_mirrors(i, o->tensor[%zu].extent[%zu]);\n",
                   tensor, tensor, own->rank - 1);
    buf_printf(x->out,
               "    const double v = promise_keeps(&o->promise[%zu], &o->source[%zu], '%c', "
               "raw_%.*s(o, i), i);\n    return source_stored(&o->source[%zu], '%c', v);\n}\n",
               tensor, tensor, kind, STR_ARG(own->name), tensor, kind);
}

static bool has_statement(const struct task *t, size_t tensor) {
    for (size_t i = 0; i < t->ndefinitions; i++)
        if (t->definitions[i].tensor == tensor)
            return true;
    return false;
}

/* Those with a distribution first, then definitions in their order, each once. */
static void oracle_put_elements(struct oracle_text *x) {
    const struct task *t = x->t;
    bool made[TASK_MAX_TENSORS] = {false};
    for (size_t i = 0; i < t->ntensors; i++)
        if (is_made(&t->tensors[i]))
            buf_printf(x->out,
                       "__device__ __noinline__ static double element_%.*s(const oracle_world *o, "
                       "int64_t i);\n",
                       STR_ARG(t->tensors[i].name));
    for (size_t i = 0; i < t->ntensors; i++)
        if (is_made(&t->tensors[i]) && !has_statement(t, i))
            put_element(x, i);
    for (size_t i = 0; i < x->plan.nsteps; i++)
        if (x->plan.steps[i].kind == ORACLE_DEFINE)
            oracle_put_step(x, i);
    for (size_t i = 0; i < t->ndefinitions; i++)
        if (!made[t->definitions[i].tensor]) {
            made[t->definitions[i].tensor] = true;
            put_element(x, t->definitions[i].tensor);
        }
}

/* ---- reads ---- */

static str limits(struct oracle_text *x, enum dtype t) {
    double lo, hi;
    dtype_limits(t, &lo, &hi);
    if (t == DTYPE_I64)
        hi = 0x1.fffffffffffffp62; /* the largest double below 2^63 */
    return arena_printf(x->a, "%.*s, %.*s", STR_ARG(oracle_number(x, lo)),
                        STR_ARG(oracle_number(x, hi)));
}

/* Loads in either case, from the first element if need be: without a branch, loops keep the sizes
 * they go by in registers. */
static void put_padded_read(struct oracle_text *x, size_t tensor) {
    const struct tensor *t = &x->t->tensors[tensor];
    str places = coordinates(x, t, "");
    buf_printf(x->out,
               "__device__ static inline double padded_%.*s(const oracle_world *o%.*s, double "
               "otherwise) {\n    const bool in = inside_%.*s(o%.*s);\n"
               "    const int64_t at = at_%.*s(o%.*s);\n"
               "    const double v = load<%s>(o->tensor[%zu].at, in ? at : 0);\n"
               "    return in ? v : otherwise;\n}\n",
               STR_ARG(t->name), STR_ARG(coordinates(x, t, "int64_t ")), STR_ARG(t->name),
               STR_ARG(places), STR_ARG(t->name), STR_ARG(places), oracle_dtype(t->dtype), tensor);
}

static void put_input_read(struct oracle_text *x, size_t tensor) {
    const struct tensor *t = &x->t->tensors[tensor];
    bool real = dtype_info(t->dtype)->kind == 'f', wide = t->dtype == DTYPE_F64;
    str at = arena_printf(x->a, "at_%.*s(o%.*s)", STR_ARG(t->name), STR_ARG(coordinates(x, t, "")));
    str read = arena_printf(x->a, "load<%s>(o->tensor[%zu].at, %.*s)", oracle_dtype(t->dtype),
                            tensor, STR_ARG(at));
    if (t->role == TENSOR_INOUT)
        read =
            arena_printf(x->a, real ? "element_%.*s(o, %.*s)" : "whole_fit(element_%.*s(o, %.*s)",
                         STR_ARG(t->name), STR_ARG(at));
    if (t->role == TENSOR_INOUT && !real)
        read = arena_printf(x->a, "%.*s, %.*s)", STR_ARG(read), STR_ARG(limits(x, t->dtype)));
    buf_printf(x->out,
               "__device__ static inline %s read_%.*s(const oracle_world *o%.*s) {\n"
               "    return %s(%.*s);\n}\n",
               wide ? "value" : "double", STR_ARG(t->name), STR_ARG(coordinates(x, t, "int64_t ")),
               wide ? "value_input" : "", STR_ARG(read));
    if (oracle_is_loaded(t))
        put_padded_read(x, tensor);
}

static void found_point(struct oracle_text *x, size_t i, str arguments) {
    buf_printf(x->out, "        const value v = point_%zu(o%.*s);\n", i, STR_ARG(arguments));
    const struct tensor *t = &x->t->tensors[x->t->statements[i].tensor];
    if (t->dtype == DTYPE_F64) /* no type was stated */
        buf_puts(x->out, S("        return v;\n"));
    else if (dtype_info(t->dtype)->kind == 'f')
        buf_printf(x->out, "        return let_float(RULES.limits, %s, v);\n",
                   oracle_dtype(t->dtype));
    else
        buf_printf(x->out, "        return let_integer(v, %.*s);\n", STR_ARG(limits(x, t->dtype)));
}

static void put_let_kernel(struct oracle_text *x, size_t tensor, size_t step) {
    const struct tensor *t = &x->t->tensors[tensor];
    buf_printf(x->out,
               "extern \"C\" __global__ void oracle_let_%zu(const __grid_constant__ oracle_op op) "
               "{\n    const oracle_world *o = op.world;\n"
               "    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;\n"
               "    if (i >= o->array[%zu].count)\n        return;\n",
               step, step);
    oracle_put_coordinates(x, tensor);
    buf_printf(x->out,
               "    put_result(o->array[%zu], &o->odd[%zu], i, made_%.*s(o%.*s), 0.0);\n}\n", step,
               x->t->ntensors + step, STR_ARG(t->name), STR_ARG(coordinates(x, t, "")));
}

/* A let is evaluated where it is read, or once and for all. */
static void put_let_read(struct oracle_text *x, size_t tensor) {
    const struct tensor *t = &x->t->tensors[tensor];
    int step = x->plan.let_step[tensor];
    str parameters = coordinates(x, t, "int64_t ");
    buf_printf(x->out, "__device__ static value %s_%.*s(const oracle_world *o%.*s) {\n",
               step < 0 ? "read" : "made", STR_ARG(t->name), STR_ARG(parameters));
    oracle_put_dispatch(x, x->t->statements, x->t->nstatements, tensor, found_point);
    buf_puts(x->out, S("    return undefined();\n}\n"));
    if (step < 0)
        return;
    put_let_kernel(x, tensor, (size_t)step);
    buf_printf(x->out,
               "__device__ static inline value read_%.*s(const oracle_world *o%.*s) {\n"
               "    return element_at(o->array[%d], at_%.*s(o%.*s));\n}\n",
               STR_ARG(t->name), STR_ARG(parameters), step, STR_ARG(t->name),
               STR_ARG(coordinates(x, t, "")));
}

/* Tensors as they are read, and inputs as they are made. */
static void oracle_put_reads(struct oracle_text *x, size_t tensor) {
    if (x->t->tensors[tensor].role == TENSOR_LET)
        put_let_read(x, tensor);
    else
        put_input_read(x, tensor);
}

/* ---- by number ---- */

/* NAME_of(o, tensor, i…): NAME_x of the tensor with that number. */
static void oracle_put_switch(struct oracle_text *x, const char *type, const char *name,
                              const char *parameters, const char *arguments, const char *otherwise,
                              bool (*has)(const struct oracle_text *x, size_t tensor)) {
    buf_printf(
        x->out,
        "\n__device__ static inline %s %s_of(const oracle_world *o, int tensor, int64_t i%s) "
        "{\n    switch (tensor) {\n",
        type, name, parameters);
    for (size_t i = 0; i < x->t->ntensors; i++)
        if (has(x, i))
            buf_printf(x->out, "    case %zu:\n        return %s_%.*s(o, i%s);\n", i, name,
                       STR_ARG(x->t->tensors[i].name), arguments);
    buf_printf(x->out, "    default:\n        return %s;\n    }\n}\n", otherwise);
}

static bool is_input(const struct oracle_text *x, size_t tensor) {
    return tensor_is_input(&x->t->tensors[tensor]);
}

/* c0, c1, … of element i. */
static void oracle_put_element_switch(struct oracle_text *x) {
    oracle_put_switch(x, "double", "element", "", "", "NAN", is_input);
}

/* ---- statements as functions of their indices, and outputs as they are expected ----
 *
 * For statement s point_s, for output y expected_y and, where it is the place of an extreme, tie_y,
 * which says whether another place is as good. */

static const struct oracle_step *index_step(const struct oracle_text *x,
                                            const struct statement *s) {
    const struct oracle_step *p =
        pattern_is_index(x->t, s) ? oracle_plan_find(&x->plan, s->body) : NULL;
    return p && !p->exact ? p : NULL;
}

static void oracle_put_points(struct oracle_text *x, size_t statement) {
    const struct statement *s = &x->t->statements[statement];
    struct oracle_code c = oracle_code_begin(x, s, false, 4);
    const struct oracle_step *index = index_step(x, s);
    oracle_put_source(x, s->at, s->len);
    buf_printf(x->out, "__device__ static value point_%zu(const oracle_world *o", statement);
    for (size_t v = 0; v < s->nindex; v++)
        buf_printf(x->out, ", int64_t %.*s_", STR_ARG(s->index[v]));
    buf_puts(x->out, index ? S(", value *best) {\n") : S(") {\n"));
    if (index)
        buf_printf(x->out, "    return reduced_%zu(o%.*s, best);\n}\n",
                   (size_t)(index - x->plan.steps), STR_ARG(oracle_arguments(x, index)));
    else {
        c.root = s->body;
        struct oracle_operand v = oracle_put_value(&c, s->body, false);
        buf_printf(x->out, "    return value(%.*s);\n}\n", STR_ARG(v.text));
    }
    oracle_code_end(&c);
}

static void found_output(struct oracle_text *x, size_t i, str arguments) {
    const struct statement *s = &x->t->statements[i];
    enum dtype t = x->t->tensors[s->tensor].dtype;
    bool index = index_step(x, s);
    double lo, hi;
    dtype_limits(t, &lo, &hi);
    buf_printf(x->out, "        value best = 0.0;\n        const value v = point_%zu(o%.*s%s);\n",
               i, STR_ARG(arguments), index ? ", &best" : "");
    if (dtype_info(t)->kind == 'f')
        buf_printf(x->out, "        expected e = output_float(%s, v);\n", oracle_dtype(t));
    else
        buf_printf(x->out, "        expected e = output_integer(v, %.*s, %.*s);\n",
                   STR_ARG(oracle_number(x, lo)), STR_ARG(oracle_number(x, hi)));
    buf_puts(x->out, S("        e.best = best;\n        return e;\n"));
}

static void found_tie(struct oracle_text *x, size_t i, str arguments) {
    const struct oracle_step *p = index_step(x, &x->t->statements[i]);
    if (p)
        buf_printf(x->out, "        return tie_%zu(o%.*s, best, got);\n",
                   (size_t)(p - x->plan.steps), STR_ARG(arguments));
    else
        buf_puts(x->out, S("        return false;\n"));
}

static void put_head(struct oracle_text *x, size_t tensor, const char *type, const char *name,
                     const char *more) {
    const struct tensor *t = &x->t->tensors[tensor];
    buf_printf(x->out,
               "__device__ __noinline__ static %s %s_%.*s(const oracle_world *o, int64_t i%s) {\n",
               type, name, STR_ARG(t->name), more);
    oracle_put_coordinates(x, tensor);
}

static bool has_ties(const struct oracle_text *x, size_t tensor) {
    for (size_t i = 0; i < x->t->nstatements; i++)
        if (x->t->statements[i].tensor == tensor && index_step(x, &x->t->statements[i]))
            return true;
    return false;
}

static void put_expected(struct oracle_text *x, size_t tensor) {
    const struct task *t = x->t;
    put_head(x, tensor, "expected", "expected", "");
    oracle_put_dispatch(x, t->statements, t->nstatements, tensor, found_output);
    buf_puts(x->out, S("    return output_integer(undefined(), 0, 0);\n}\n"));
    if (!has_ties(x, tensor))
        return;
    put_head(x, tensor, "bool", "tie", ", value best, double got");
    oracle_put_dispatch(x, t->statements, t->nstatements, tensor, found_tie);
    buf_puts(x->out, S("    return false;\n}\n"));
}

static bool is_output(const struct oracle_text *x, size_t tensor) {
    return tensor_is_output(&x->t->tensors[tensor]);
}

/* Comparisons with what a case keeps, by the types that outputs have; of integers and truth values,
 * one element at a time is as much as their number asks for. */
static void put_kept_switch(struct oracle_text *x) {
    uint32_t done = 0;
    buf_puts(x->out, S("\n__device__ static inline int64_t compare_kept_of(const oracle_op &op, "
                       "int64_t i, int64_t last, oracle_tally &tally) {\n"
                       "    switch ((dtype)op.world->tensor[blockIdx.y].type) {\n"));
    for (size_t i = 0; i < x->t->ntensors && !x->plan.ties; i++) {
        enum dtype t = x->t->tensors[i].dtype;
        if (!is_output(x, i) || dtype_info(t)->kind != 'f' || done >> t & 1)
            continue;
        done |= UINT32_C(1) << t;
        buf_printf(x->out, "    case %s:\n        return compare_kept<%s>(op, i, last, tally);\n",
                   oracle_dtype(t), oracle_dtype(t));
    }
    buf_puts(x->out, S("    default:\n        return i;\n    }\n}\n"));
}

static void oracle_put_outputs(struct oracle_text *x) {
    for (size_t i = 0; i < x->t->ntensors; i++)
        if (tensor_is_output(&x->t->tensors[i]))
            put_expected(x, i);
    oracle_put_switch(x, "expected", "expected", "", "", "output_integer(undefined(), 0, 0)",
                      is_output);
    oracle_put_switch(x, "bool", "tie", ", value best, double got", ", best, got", "false",
                      has_ties);
    put_kept_switch(x);
}

/* ---- contractions ----
 *
 * A thread makes a block of results at once, so that loading and converting a factor, and finding
 * its place, is paid once for a line of them. For reduction k
 *
 *     rows_k, columns_k    where a row, or a column, of results is: the indices that only one
 *                          factor depends on
 *     products_k           adds some of the terms of a block of results to their rows
 *     terms_k              the same for one result; where factors carry errors, as above
 *     oracle_block_k       makes all results, a block a thread
 *
 * Terms come run by run along the innermost variable. Where a factor is a single read, the place of
 * a run's first term is computed and the others are steps from there. */

static bool has_axis(uint32_t axes, size_t i) {
    return axes >> i & 1;
}

static bool is_common(const struct oracle_step *p, size_t i) {
    return !has_axis(p->row_axes | p->column_axes, i);
}

static str axis_name(struct oracle_text *x, const struct oracle_step *p, size_t i) {
    return oracle_variable(x, p->s, p->axis[i]);
}

/* ---- the terms of a block ---- */

static void put_place_type(struct oracle_text *x, size_t k, const char *name, uint32_t axes) {
    const struct oracle_step *p = &x->plan.steps[k];
    buf_printf(x->out, "struct %s_%zu {\n", name, k);
    for (size_t i = 0; i < p->naxes; i++)
        if (has_axis(axes, i))
            buf_printf(x->out, "    int64_t %.*s;\n", STR_ARG(axis_name(x, p, i)));
    buf_puts(x->out, S("};\n"));
}

/* ", int64_t b_" or ", b_" of the indices that both factors depend on. */
static str common_text(struct oracle_text *x, const struct oracle_step *p, const char *type) {
    str s = S("");
    for (size_t i = 0; i < p->naxes; i++)
        if (is_common(p, i))
            s = arena_printf(x->a, "%.*s, %s%.*s", STR_ARG(s), type, STR_ARG(axis_name(x, p, i)));
    return s;
}

/* All indices of the result in row u and column v, each behind a comma. */
static str result_arguments(struct oracle_text *x, const struct oracle_step *p) {
    str s = S("");
    for (size_t i = 0; i < p->naxes; i++)
        s = arena_printf(x->a, "%.*s, %s%.*s", STR_ARG(s),
                         has_axis(p->row_axes, i)      ? "row[u]."
                         : has_axis(p->column_axes, i) ? "column[v]."
                                                       : "",
                         STR_ARG(axis_name(x, p, i)));
    return s;
}

/* The innermost variable has come to its end. */
static void put_next_run(struct oracle_text *x, const struct oracle_step *p) {
    const struct reduce *r = p->e->reduce;
    int indent = 12;
    for (size_t k = r->nvars; k-- > 1; indent += 4) {
        str name = oracle_variable(x, p->s, r->vars[k].var);
        str outer = oracle_variable(x, p->s, r->vars[k - 1].var);
        buf_printf(x->out, "%*sif (%.*s == %.*shi) {\n%*s%.*s = %.*slo;\n%*s%.*s++;\n", indent, "",
                   STR_ARG(name), STR_ARG(name), indent + 4, "", STR_ARG(name), STR_ARG(name),
                   indent + 4, "", STR_ARG(outer));
    }
    for (; indent > 12; indent -= 4)
        buf_printf(x->out, "%*s}\n", indent - 4, "");
}

/* ---- factors ---- */

/* By how much an index grows with `var`: false where that is not the same everywhere. As deep as
 * the tree. */
static bool slope(struct oracle_text *x, const struct oracle_step *p, const struct expr *e,
                  size_t var, str *out) {
    str a, b;
    bool depends[2] = {false, false};
    for (size_t k = 0; k < 2 && k < e->nargs; k++)
        depends[k] = expr_vars(e->args[k]) >> var & 1;
    *out = e->kind == EXPR_INDEX && e->ref == var ? S("1ll") : S("0ll");
    if (e->kind == EXPR_INDEX || !(expr_vars(e) >> var & 1))
        return true;
    if (e->kind == EXPR_MUL && depends[0] != depends[1]) {
        const struct expr *by = e->args[depends[0] ? 1 : 0];
        if (!slope(x, p, e->args[depends[0] ? 0 : 1], var, &a))
            return false;
        *out =
            arena_printf(x->a, "(%.*s * %.*s)", STR_ARG(a), STR_ARG(oracle_integer(x, p->s, by)));
        return true;
    }
    if ((e->kind != EXPR_ADD && e->kind != EXPR_SUB) || !slope(x, p, e->args[0], var, &a) ||
        !slope(x, p, e->args[1], var, &b))
        return false;
    *out = arena_printf(x->a, "(%.*s %s %.*s)", STR_ARG(a), e->kind == EXPR_ADD ? "+" : "-",
                        STR_ARG(b));
    return true;
}

/* A factor that is one read, whose place moves by the same distance from term to term of a run. */
struct walked {
    const struct expr *read; /* NULL: it is none */
    bool padded;
    str slope[TASK_MAX_RANK];
    size_t moving; /* the index that changes, where it is padded */
};

static struct walked walked_of(struct oracle_text *x, const struct oracle_step *p,
                               const struct expr *e) {
    const struct reduce *r = p->e->reduce;
    size_t var = r->vars[r->nvars - 1].var, moving = 0;
    struct walked w = {.padded = e->kind == EXPR_PAD}, none = {0};
    const struct expr *read = w.padded ? e->args[0] : e;
    if (read->kind != EXPR_READ || !oracle_is_loaded(&x->t->tensors[read->ref]) || p->checked)
        return none;
    if (w.padded && !(e->args[1]->kind == EXPR_NUMBER && e->args[1]->number == 0))
        return none;
    for (size_t k = 0; k < read->nargs; k++) {
        if (!pattern_is_pure(read->args[k]) || !slope(x, p, read->args[k], var, &w.slope[k]))
            return none;
        if (expr_vars(read->args[k]) >> var & 1) {
            w.moving = k;
            moving++;
        }
    }
    w.read = w.padded && moving != 1 ? NULL : read;
    return w;
}

/* How far it is to the next term's element. */
static str step_text(struct oracle_text *x, const struct walked *w) {
    str s = S("0");
    size_t tensor = w->read->ref, rank = w->read->nargs;
    for (size_t k = 0; k < rank; k++) {
        if (str_eq(w->slope[k], S("0ll")))
            continue;
        s = arena_printf(x->a, "%.*s + %.*s", STR_ARG(s), STR_ARG(w->slope[k]));
        if (k + 1 < rank)
            s = arena_printf(x->a, "%.*s * o->tensor[%zu].stride[%zu]", STR_ARG(s), tensor, k);
    }
    return s;
}

/* Which of the indices that stay are beyond the edges. */
static str out_text(struct oracle_text *x, const struct walked *w, const str *at) {
    str s = S("false");
    for (size_t k = 0; k < w->read->nargs; k++)
        if (k != w->moving)
            s = arena_printf(x->a, "%.*s | !inside(%.*s, o->tensor[%zu].extent[%zu])", STR_ARG(s),
                             STR_ARG(at[k]), w->read->ref, k);
    return s;
}

static void put_walk(struct oracle_text *x, const struct oracle_step *p, const struct walked *w,
                     const char *name) {
    const struct tensor *t = &x->t->tensors[w->read->ref];
    const char *type = oracle_dtype(t->dtype);
    str at[TASK_MAX_RANK], all = S("");
    for (size_t k = 0; k < w->read->nargs; k++) {
        at[k] = oracle_integer(x, p->s, w->read->args[k]);
        all = arena_printf(x->a, "%.*s, %.*s", STR_ARG(all), STR_ARG(at[k]));
    }
    str walk = arena_printf(x->a, "walk<%s>(o->tensor[%zu].at, at_%.*s(o%.*s), %.*s)", type,
                            w->read->ref, STR_ARG(t->name), STR_ARG(all), STR_ARG(step_text(x, w)));
    if (w->padded)
        walk = arena_printf(
            x->a, "padded_walk<%s>(%.*s, %.*s, %.*s, %.*s, o->tensor[%zu].extent[%zu])", type,
            STR_ARG(walk), STR_ARG(out_text(x, w, at)), STR_ARG(at[w->moving]),
            STR_ARG(w->slope[w->moving]), w->read->ref, w->moving);
    buf_printf(x->out, "                %s = %.*s;\n", name, STR_ARG(walk));
}

/* The two sides of a block. */
struct side {
    const char *place, *index, *count, *value;
    uint32_t axes;
    const struct expr *factor;
    struct walked w;
    bool exact; /* it is a double, not a value */
};

static struct side side_of(struct oracle_text *x, const struct oracle_step *p, int which) {
    const struct expr *factor = p->e->args[0]->args[which];
    struct side rows = {"row", "u", "ROWS", "x", p->row_axes, factor, walked_of(x, p, factor),
                        true};
    struct side columns = {"column", "v", "COLUMNS", "y", p->column_axes, factor, rows.w, true};
    struct side s = which == 0 ? rows : columns;
    s.exact = oracle_exact(x->t, factor, true);
    return s;
}

static void put_side_loop(struct oracle_text *x, const struct oracle_step *p, const struct side *s,
                          int indent) {
    buf_printf(x->out, "#pragma unroll\n%*sfor (int %s = 0; %s < %s; %s++) {\n", indent, "",
               s->index, s->index, s->count, s->index);
    for (size_t i = 0; i < p->naxes; i++)
        if (has_axis(s->axes, i))
            buf_printf(x->out, "%*sconst int64_t %.*s = %s[%s].%.*s;\n", indent + 4, "",
                       STR_ARG(axis_name(x, p, i)), s->place, s->index,
                       STR_ARG(axis_name(x, p, i)));
}

/* Before a run: where its first term reads. */
static void put_side_start(struct oracle_text *x, const struct oracle_step *p,
                           const struct side *s) {
    if (!s->w.read)
        return;
    str name = arena_printf(x->a, "%s_walk[%s]", s->place, s->index);
    buf_printf(x->out, "            %swalk<%s> %s_walk[%s];\n", s->w.padded ? "padded_" : "",
               oracle_dtype(x->t->tensors[s->w.read->ref].dtype), s->place, s->count);
    put_side_loop(x, p, s, 12);
    put_walk(x, p, &s->w, arena_cstr(x->a, name));
    buf_puts(x->out, S("            }\n"));
}

/* A term: the factor, for all rows or columns of the block. */
static void put_factor(struct oracle_text *x, const struct oracle_step *p, const struct side *s) {
    struct oracle_code c = oracle_code_begin(x, p->s, false, 20);
    c.checked = p->checked;
    if (s->w.read) {
        buf_printf(x->out,
                   "#pragma unroll\n                for (int %s = 0; %s < %s; %s++)\n"
                   "                    %s[%s] = %s_walk[%s].next();\n",
                   s->index, s->index, s->count, s->index, s->value, s->index, s->place, s->index);
        return;
    }
    put_side_loop(x, p, s, 16);
    struct oracle_operand v = oracle_put_value(&c, s->factor, true);
    buf_printf(x->out, "%*s%s[%s] = %.*s;\n                }\n", c.indent, "", s->value, s->index,
               STR_ARG(v.text));
    oracle_code_end(&c);
}

/* ---- chains ---- */

static void put_chain(struct oracle_text *x, const struct oracle_step *p) {
    const struct reduce *r = p->e->reduce;
    str inner = oracle_variable(x, p->s, r->vars[r->nvars - 1].var);
    struct side side[2] = {side_of(x, p, 0), side_of(x, p, 1)};
    buf_printf(x->out,
               "        for (int rest = some; rest > 0;) {\n"
               "            const int run = (int)integer_minimum(rest, %.*shi - %.*s);\n",
               STR_ARG(inner), STR_ARG(inner));
    for (int k = 0; k < 2; k++)
        put_side_start(x, p, &side[k]);
    buf_printf(x->out, "            for (int i = 0; i < run; i++, %.*s++) {\n", STR_ARG(inner));
    for (int k = 0; k < 2; k++) {
        buf_printf(x->out, "                %s %s[%s];\n", side[k].exact ? "double" : "value",
                   side[k].value, side[k].count);
        put_factor(x, p, &side[k]);
    }
    buf_printf(x->out,
               "#pragma unroll\n"
               "                for (int u = 0; u < ROWS; u++)\n#pragma unroll\n"
               "                    for (int v = 0; v < COLUMNS; v++)\n"
               "                        %s_add(c[u][v], f, x[u], y[v]);\n"
               "            }\n            rest -= run;\n",
               p->product ? "products" : "sums");
    put_next_run(x, p);
    buf_puts(x->out, S("        }\n"));
}

/* Opens a loop over all results of the block. */
static void put_each(struct oracle_text *x) {
    buf_puts(x->out, S("#pragma unroll\n        for (int u = 0; u < ROWS; u++)\n#pragma unroll\n"
                       "            for (int v = 0; v < COLUMNS; v++) {\n"
                       "                row_of<LEVELS> &d = r[u * COLUMNS + v];\n"));
}

static void put_chain_start(struct oracle_text *x, const struct oracle_step *p) {
    buf_printf(x->out, "        %s c[ROWS][COLUMNS] = {};\n", p->product ? "products" : "sums");
    if (p->product)
        return;
    put_each(x);
    buf_puts(x->out, S("                c[u][v].last = d.c.last;\n"
                       "                c[u][v].same = d.c.alike;\n"
                       "                c[u][v].lost = d.c.lost;\n            }\n"));
}

static void put_chain_end(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    str arguments = result_arguments(x, p);
    put_each(x);
    if (p->product)
        buf_printf(x->out,
                   "                if (products_are_odd(c[u][v], f))\n"
                   "                    d.c.seen = look_%zu(o%.*s, first, some, d.c.seen);\n"
                   "                take_products(d.c, d.before, own, c[u][v], 0, some);\n",
                   k, STR_ARG(arguments));
    else
        buf_printf(x->out,
                   "                if (sums_are_odd(c[u][v], f))\n"
                   "                    terms_%zu(o, d%.*s, first, some);\n                else\n"
                   "                    take_sums(d.c, d.before, own, c[u][v], some);\n",
                   k, STR_ARG(arguments));
    buf_puts(x->out, S("            }\n"));
}

/* "const rows_3 row[1] = {{i_, j_}};" */
static void put_one_place(struct oracle_text *x, size_t k, const char *type, const char *name,
                          uint32_t axes) {
    const struct oracle_step *p = &x->plan.steps[k];
    buf_printf(x->out, "    const %s_%zu %s[1] = {", type, k, name);
    for (size_t i = 0, n = 0; i < p->naxes; i++)
        if (has_axis(axes, i))
            buf_printf(x->out, "%s%.*s", n++ ? ", " : "{", STR_ARG(axis_name(x, p, i)));
    buf_puts(x->out, axes ? S("}};\n") : S("};\n"));
}

static void put_block_terms(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    buf_printf(x->out,
               "__device__ __noinline__ static void terms_%zu(const oracle_world *o, row &r%.*s, "
               "int64_t first, int64_t left) {\n",
               k, STR_ARG(oracle_parameters(x, p)));
    put_one_place(x, k, "rows", "row", p->row_axes);
    put_one_place(x, k, "columns", "column", p->column_axes);
    buf_printf(x->out, "    products_%zu(o, &r, row, column%.*s, first, left);\n}\n", k,
               STR_ARG(common_text(x, p, "")));
}

static void oracle_put_products(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    put_place_type(x, k, "rows", p->row_axes);
    put_place_type(x, k, "columns", p->column_axes);
    buf_printf(x->out,
               "template <int ROWS, int COLUMNS, int LEVELS>\n"
               "__device__ static inline void products_%zu(const oracle_world *o, row_of<LEVELS> "
               "*r, const rows_%zu (&row)[ROWS], const columns_%zu (&column)[COLUMNS]%.*s, "
               "int64_t first, int64_t left) {\n"
               "    const fold f = fold_%zu(o), own = f; // own: who asks for its address\n",
               k, k, k, STR_ARG(common_text(x, p, "int64_t ")), k);
    oracle_put_first_term(x, p);
    buf_puts(x->out, S("    for (; left > 0; first += CHAIN, left -= CHAIN) {\n"
                       "        const int some = (int)integer_minimum(left, CHAIN);\n"));
    put_chain_start(x, p);
    put_chain(x, p);
    put_chain_end(x, k);
    buf_puts(x->out, S("    }\n}\n"));
    if (p->product)
        put_block_terms(x, k);
}

/* ---- the kernel ---- */

/* "1 * a.n[0] * a.n[2]" */
static str extent_text(struct oracle_text *x, const struct oracle_step *p, uint32_t axes) {
    str s = S("1");
    for (size_t i = 0; i < p->naxes; i++)
        if (has_axis(axes, i))
            s = arena_printf(x->a, "%.*s * a.n[%zu]", STR_ARG(s), i);
    return s;
}

static void put_lines(struct oracle_text *x, const struct oracle_step *p, bool rows) {
    const char *line = rows ? "row" : "column", *index = rows ? "u" : "v";
    buf_printf(x->out,
               "#pragma unroll\n    for (int %s = 0; %s < %d; %s++) {\n"
               "        int64_t rest = integer_minimum(t.%s + %s * op.tile.%s_step, %ss - 1);\n",
               index, index, rows ? p->rows : p->columns, index, line, index, line, line);
    oracle_put_indices(x, p, rows ? p->row_axes : p->column_axes, rows ? "row[u]." : "column[v].",
                       8);
    buf_puts(x->out, S("    }\n"));
}

static void put_results(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    buf_printf(x->out,
               "#pragma unroll\n    for (int u = 0; u < %d; u++)\n#pragma unroll\n"
               "        for (int v = 0; v < %d; v++) {\n            const int64_t i = 0",
               p->rows, p->columns);
    for (size_t i = 0; i < p->naxes; i++)
        buf_printf(x->out, " + (%s%.*s - a.lo[%zu]) * a.stride[%zu]",
                   has_axis(p->row_axes, i)      ? "row[u]."
                   : has_axis(p->column_axes, i) ? "column[v]."
                                                 : "",
                   STR_ARG(axis_name(x, p, i)), i, i);
    buf_printf(x->out,
               ";\n            if (t.row + u * op.tile.row_step < rows && t.column + v * "
               "op.tile.column_step < columns)\n"
               "                put_block_result(op, a, &o->odd[%zu], r[u * %d + v].c, r[u * %d + "
               "v].before, f, i, segment);\n        }\n}\n",
               x->t->ntensors + k, p->columns, p->columns);
}

/* The terms of a contraction, for a block of its results. */
static void oracle_put_block_kernel(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    uint32_t all = (UINT32_C(1) << p->naxes) - 1, common = all & ~(p->row_axes | p->column_axes);
    bool rows_run = has_axis(p->row_axes, p->naxes - 1);
    /* Three blocks a multiprocessor: what spills then is used between runs of terms, not in them.
     */
    oracle_put_kernel_head(x, "__launch_bounds__(ORACLE_BLOCK, 3) ", "block", k);
    buf_printf(x->out,
               "    const int64_t rows = %.*s, columns = %.*s, common = %.*s;\n"
               "    const block_place t = place_block<%s>(op.tile, n);\n"
               "    if (t.row >= op.tile.row_step || t.column >= op.tile.column_step || t.rest >= "
               "common * op.segments)\n        return;\n"
               "    const int64_t segment = t.rest / common;\n",
               STR_ARG(extent_text(x, p, p->row_axes)), STR_ARG(extent_text(x, p, p->column_axes)),
               STR_ARG(extent_text(x, p, common)), rows_run ? "true" : "false");
    if (common)
        buf_puts(x->out, S("    int64_t rest = t.rest % common;\n"));
    oracle_put_indices(x, p, common, "const int64_t ", 4);
    buf_printf(x->out, "    rows_%zu row[%d];\n    columns_%zu column[%d];\n", k, p->rows, k,
               p->columns);
    put_lines(x, p, true);
    put_lines(x, p, false);
    buf_printf(x->out,
               "    const fold f = fold_%zu(o);\n    row_of<ORACLE_LEVELS> r[%d];\n"
               "    for (int i = 0; i < %d; i++)\n        row_start(r[i], f);\n"
               "    products_%zu(o, r, row, column%.*s, segment * op.terms, op.terms);\n",
               k, p->rows * p->columns, p->rows * p->columns, k, STR_ARG(common_text(x, p, "")));
    put_results(x, k);
}

/* Lists (.def) where they are included; without the other lines that C includes by. */
static bool put_asset(struct oracle_text *x, str text, struct err *err) {
    str line, list;
    while (str_line(&text, &line)) {
        if (str_starts(line, S("#include \"spec/")) && str_ends(line, S(".def\""))) {
            str name = str_cut(line, 15, line.n - 16);
            str path = arena_printf(x->a, "oracle/%.*s", STR_ARG(name));
            if (!asset_get(NULL, arena_cstr(x->a, path), x->a, &list, err) ||
                !put_asset(x, list, err))
                return false;
        } else if (!str_starts(line, S("#include"))) {
            buf_puts(x->out, line);
            buf_putc(x->out, '\n');
        }
    }
    return true;
}

static bool put_assets(struct oracle_text *x, const char *const *names, struct err *err) {
    str text;
    for (; *names; names++) {
        if (!asset_get(NULL, *names, x->a, &text, err) || !put_asset(x, text, err))
            return false;
    }
    return true;
}

/* Normal numbers take long to compile. */
static void put_normal(struct oracle_text *x) {
    bool normal = false;
    for (size_t i = 0; i < x->t->ntensors; i++)
        normal |= x->t->tensors[i].dist.kind == DIST_NORMAL;
    buf_printf(x->out, "#define ANY_NORMAL %d\n", normal);
}

/* The rules of the task's class: constants, once they are inlined. */
static void put_rules(struct oracle_text *x) {
    struct rules r = rules_of(x->t->accuracy);
    buf_printf(x->out,
               "\n// Accuracy class %s.\n"
               "__device__ static inline rules task_rules() {\n"
               "    const rules r = {{%a, %a}, %a, %a, %a, %a, %a};\n    return r;\n}\n"
               "#define RULES task_rules()\n#define CLASS_UNIT %a\n\n",
               accuracy_name(x->t->accuracy), r.limits.worst, r.limits.rms, r.unit2, r.least2,
               r.operand2, r.truncation, r.format2, accuracy_unit(x->t->accuracy));
}

/* What C lays out must be what CUDA finds. */
static void put_sizes(struct oracle_text *x) {
#define SIZE(T)                                                                                    \
    buf_printf(x->out, "static_assert(sizeof(" #T ") == %zu, \"laid out as in C\");\n",            \
               sizeof(struct T))
    SIZE(source);
    SIZE(promise);
    SIZE(oracle_tensor);
    SIZE(oracle_array);
    SIZE(oracle_sort);
    SIZE(oracle_world);
    SIZE(oracle_tile);
    SIZE(oracle_op);
    SIZE(oracle_join);
    SIZE(oracle_part);
    SIZE(oracle_tally);
    SIZE(oracle_regions);
#undef SIZE
}

static void put_dims(struct oracle_text *x) {
    for (size_t i = 0; i < x->t->ndims; i++)
        buf_printf(x->out, "#define dim_%.*s (o->dim[%zu])\n", STR_ARG(x->t->dims[i].name), i);
}

/* Reductions before the statement they stand in, statements before what reads them. */
static void put_statements(struct oracle_text *x) {
    const struct task *t = x->t;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        bool last = true;
        for (size_t k = 0; k < x->plan.nsteps; k++)
            if (x->plan.steps[k].s == s && x->plan.steps[k].kind == ORACLE_REDUCE)
                oracle_put_step(x, k);
        oracle_put_points(x, i);
        for (size_t k = i + 1; k < t->nstatements; k++)
            last = last && t->statements[k].tensor != s->tensor;
        if (last && t->tensors[s->tensor].role == TENSOR_LET)
            oracle_put_reads(x, s->tensor);
    }
}

static bool put_unit(struct oracle_text *x, struct err *err) {
    static const char *const shared[] = {
        "oracle/shared.h",        "rng/philox.cuh",         "oracle/rng.cuh",
        "oracle/enums.h",         "oracle/convert_value.h", "oracle/source_value.h",
        "oracle/poison_value.h",  "oracle/value.h",         "oracle/chain.h",
        "oracle/compare_value.h", "oracle/layout.h",        NULL};
    static const char *const own[] = {"oracle/value.cuh",
                                      "oracle/element.cuh",
                                      "oracle/fold.cuh",
                                      "oracle/check.cuh",
                                      "oracle/kept.cuh",
                                      "oracle/sort.cuh",
                                      NULL};
    static const char *const kernels[] = {"oracle/kernels.cuh", NULL};
    put_normal(x);
    if (!put_assets(x, shared, err))
        return false;
    put_rules(x);
    if (!put_assets(x, own, err))
        return false;
    put_sizes(x);
    put_dims(x);
    oracle_put_places(x);
    oracle_put_elements(x);
    for (size_t i = 0; i < x->t->ntensors; i++)
        if (tensor_is_input(&x->t->tensors[i]))
            oracle_put_reads(x, i);
    put_statements(x);
    oracle_put_element_switch(x);
    oracle_put_outputs(x);
    return put_assets(x, kernels, err);
}

bool oracle_unit(const struct task *t, struct buf *out, struct err *err) {
    struct oracle_text x = {.t = t, .out = out, .a = arena_new((size_t)256 << 20), .err = err};
    buf_printf(out, "// Oracle of task %.*s\n", STR_ARG(t->name));
    bool ok = oracle_plan_make(t, x.a, &x.plan, err);
    if (ok && x.plan.by_host)
        buf_puts(out, S("// It has a recurrence: what is expected is evaluated on the host.\n"));
    x.t = x.plan.t;
    ok = ok && put_unit(&x, err) && !x.failed;
    arena_free(x.a);
    if (ok && out->failed)
        return err_set(err, ERR_INPUT, "task %.*s: its oracle is too long", STR_ARG(t->name));
    return ok;
}
