#include "report/mathml.h"

#include "report/html.h"
#include "spec/language.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVEL_PREFIX = LEVEL_PRODUCT + 1, LEVEL_LEAF };
#define DIGITS 7 /* of a constant; the text of the task has all of them */

struct setter {
    const struct task *t;
    str names[TASK_MAX_VARS]; /* of the variables in sight */
    struct buf *out;
};

static void put(const struct setter *w, const char *markup) {
    buf_puts(w->out, str_view(markup));
}

static void put_name(const struct setter *w, str name) {
    html_element(w->out, "mi", name);
}

static void put_operator(const struct setter *w, const char *symbol) {
    html_element(w->out, "mo", str_view(symbol));
}

static void set_expr(struct setter *w, const struct expr *e, int level);

/* A fraction stands by itself, whatever is around it. */
static int level_of(const struct expr *e) {
    const struct binary *op = binary_of(e->kind);
    switch (e->kind) {
    case EXPR_DIV:
    case EXPR_FLOORDIV:
        return LEVEL_LEAF;
    case EXPR_NEG:
    case EXPR_NOT:
        return LEVEL_PREFIX;
    case EXPR_REDUCE:
        return LEVEL_PRODUCT;
    default:
        return op ? op->level : LEVEL_LEAF;
    }
}

static const char *symbol_of(enum expr_kind k) {
    switch (k) {
    case EXPR_ADD:
        return "+";
    case EXPR_SUB:
        return "−";
    case EXPR_MUL:
        return "⋅";
    case EXPR_MOD:
        return "mod";
    case EXPR_EQ:
        return "=";
    case EXPR_NE:
        return "≠";
    case EXPR_LT:
        return "<";
    case EXPR_LE:
        return "≤";
    case EXPR_GT:
        return ">";
    case EXPR_GE:
        return "≥";
    case EXPR_AND:
        return "∧";
    default:
        return "∨";
    }
}

static void set_number(const struct setter *w, const struct expr *e) {
    char text[40];
    if (e->integral || isinf(e->number)) {
        snprintf(text, sizeof text, "%lld", (long long)e->integer);
        html_element(w->out, "mn", e->integral ? str_view(text) : S("∞"));
        return;
    }
    snprintf(text, sizeof text, "%.*g", DIGITS, e->number);
    bool whole = strtod(text, NULL) == e->number;
    char *power = strchr(text, 'e');
    if (!power) {
        html_elementf(w->out, "mn", "%s%s", text, whole ? "" : "…");
        return;
    }
    *power = 0;
    long exponent = strtol(power + 1, NULL, 10);
    if (strcmp(text, "1") != 0 || !whole) {
        html_elementf(w->out, "mn", "%s%s", text, whole ? "" : "…");
        put_operator(w, "⋅");
    }
    buf_printf(w->out, "<msup><mn>10</mn><mrow>%s<mn>%ld</mn></mrow></msup>",
               exponent < 0 ? "<mo form=\"prefix\">−</mo>" : "", labs(exponent));
}

static void set_list(struct setter *w, const struct expr *e) {
    put(w, "<mrow>");
    for (size_t i = 0; i < e->nargs; i++) {
        if (i)
            put(w, "<mo separator=\"true\">,</mo>");
        set_expr(w, e->args[i], 0);
    }
    put(w, "</mrow>");
}

static void set_read(struct setter *w, const struct expr *e) {
    if (!e->nargs) {
        put_name(w, w->t->tensors[e->ref].name);
        return;
    }
    put(w, "<msub>");
    put_name(w, w->t->tensors[e->ref].name);
    set_list(w, e);
    put(w, "</msub>");
}

static void set_fraction(struct setter *w, const struct expr *above, const struct expr *below) {
    put(w, "<mfrac><mrow>");
    set_expr(w, above, 0);
    put(w, "</mrow><mrow>");
    set_expr(w, below, 0);
    put(w, "</mrow></mfrac>");
}

/* name(…), or with other brackets around one argument */
static void set_call(struct setter *w, const char *name, const char *open, const char *close,
                     const struct expr *e) {
    put(w, "<mrow>");
    if (*name) {
        put_name(w, str_view(name));
        put(w, "<mo>&#x2061;</mo>");
    }
    put_operator(w, open);
    set_list(w, e);
    put_operator(w, close);
    put(w, "</mrow>");
}

static bool is_high(const struct expr *e) {
    return expr_has(e, EXPR_DIV) || expr_has(e, EXPR_REDUCE) || expr_has(e, EXPR_IF);
}

static void set_root(struct setter *w, const struct expr *e) {
    put(w, "<msqrt><mrow>");
    set_expr(w, e->args[0], 0);
    put(w, "</mrow></msqrt>");
}

static void set_function(struct setter *w, const struct expr *e) {
    switch (e->function) {
    case FUNCTION_EXP:
        if (is_high(e->args[0])) {
            set_call(w, "exp", "(", ")", e);
            return;
        }
        put(w, "<msup><mi>e</mi><mrow>");
        set_expr(w, e->args[0], 0);
        put(w, "</mrow></msup>");
        return;
    case FUNCTION_SQRT:
        set_root(w, e);
        return;
    case FUNCTION_RSQRT:
        put(w, "<mfrac><mn>1</mn>");
        set_root(w, e);
        put(w, "</mfrac>");
        return;
    case FUNCTION_ABS:
        set_call(w, "", "|", "|", e);
        return;
    case FUNCTION_FLOOR:
        set_call(w, "", "⌊", "⌋", e);
        return;
    case FUNCTION_CEIL:
        set_call(w, "", "⌈", "⌉", e);
        return;
    case FUNCTION_SIGMOID:
        set_call(w, "σ", "(", ")", e);
        return;
    case FUNCTION_MAXIMUM:
        set_call(w, "max", "(", ")", e);
        return;
    case FUNCTION_MINIMUM:
        set_call(w, "min", "(", ")", e);
        return;
    case FUNCTION_POW:
        put(w, "<msup><mrow>");
        set_expr(w, e->args[0], LEVEL_LEAF);
        put(w, "</mrow><mrow>");
        set_expr(w, e->args[1], 0);
        put(w, "</mrow></msup>");
        return;
    default:
        set_call(w, function_info(e->function)->name, "(", ")", e);
    }
}

static void set_cases(struct setter *w, const struct expr *e) {
    put(w, "<mrow><mo>{</mo><mtable class=\"cases\"><mtr><mtd>");
    set_expr(w, e->args[1], 0);
    put(w, "</mtd><mtd><mtext>if&#xa0;</mtext>");
    set_expr(w, e->args[0], 0);
    put(w, "</mtd></mtr><mtr><mtd>");
    set_expr(w, e->args[2], 0);
    put(w, "</mtd><mtd><mtext>otherwise</mtext></mtd></mtr></mtable></mrow>");
}

/* The element, or a value where an index leaves the tensor. */
static void set_pad(struct setter *w, const struct expr *e) {
    put(w, "<mrow><mo>{</mo><mtable class=\"cases\"><mtr><mtd>");
    set_expr(w, e->args[0], 0);
    put(w, "</mtd><mtd><mtext>inside the tensor</mtext></mtd></mtr><mtr><mtd>");
    set_expr(w, e->args[1], 0);
    put(w, "</mtd><mtd><mtext>outside</mtext></mtd></mtr></mtable></mrow>");
}

/* k, k < N, k ≤ j, j ≤ k < N */
static void set_range(struct setter *w, const struct reduce_var *v) {
    bool with = v->hi->kind == EXPR_ADD && expr_is_number(v->hi->args[1], 1);
    if (!v->inferred && !expr_is_number(v->lo, 0)) {
        set_expr(w, v->lo, LEVEL_SUM);
        put_operator(w, "≤");
    }
    w->names[v->var] = v->name;
    put_name(w, v->name);
    if (v->inferred)
        return;
    put_operator(w, with ? "≤" : "<");
    set_expr(w, with ? v->hi->args[0] : v->hi, LEVEL_SUM);
}

static void set_reduce(struct setter *w, const struct expr *e) {
    static const char *const signs[REDUCTION_COUNT] = {
        [REDUCTION_SUM] = "<mo>∑</mo>",
        [REDUCTION_PROD] = "<mo>∏</mo>",
        [REDUCTION_MAX] = "<mo movablelimits=\"false\">max</mo>",
        [REDUCTION_MIN] = "<mo movablelimits=\"false\">min</mo>",
        [REDUCTION_MEAN] = "<mo movablelimits=\"false\">mean</mo>",
        [REDUCTION_ARGMAX] = "<mo movablelimits=\"false\">arg&#x2009;max</mo>",
        [REDUCTION_ARGMIN] = "<mo movablelimits=\"false\">arg&#x2009;min</mo>"};
    const struct reduce *r = e->reduce;
    put(w, "<mrow><munder>");
    put(w, signs[r->op]);
    put(w, "<mrow>");
    for (size_t i = 0; i < r->nvars; i++) {
        if (i)
            put(w, "<mo separator=\"true\">,</mo>");
        set_range(w, &r->vars[i]);
    }
    if (r->guard) {
        put(w, "<mo>:</mo>");
        set_expr(w, r->guard, 0);
    }
    put(w, "</mrow></munder>");
    set_expr(w, e->args[0], LEVEL_PRODUCT);
    put(w, "</mrow>");
}

static void set_operators(struct setter *w, const struct expr *e, int own) {
    bool factors = own == LEVEL_PRODUCT;
    int left = own == LEVEL_COMPARE ? own + 1 : own;
    set_expr(w, e->args[0], factors && e->args[0]->kind == EXPR_REDUCE ? LEVEL_LEAF : left);
    put_operator(w, symbol_of(e->kind));
    set_expr(w, e->args[1], factors && e->args[1]->kind == EXPR_REDUCE ? LEVEL_LEAF : own + 1);
}

static void set_bare(struct setter *w, const struct expr *e, int own) {
    switch (e->kind) {
    case EXPR_NUMBER:
        set_number(w, e);
        return;
    case EXPR_DIM:
        put_name(w, w->t->dims[e->ref].name);
        return;
    case EXPR_INDEX:
        put_name(w, w->names[e->ref]);
        return;
    case EXPR_READ:
        set_read(w, e);
        return;
    case EXPR_NEG:
    case EXPR_NOT:
        put(w, e->kind == EXPR_NEG ? "<mo form=\"prefix\">−</mo>" : "<mo form=\"prefix\">¬</mo>");
        set_expr(w, e->args[0], LEVEL_PREFIX);
        return;
    case EXPR_DIV:
        set_fraction(w, e->args[0], e->args[1]);
        return;
    case EXPR_FLOORDIV:
        put(w, "<mrow><mo>⌊</mo>");
        set_fraction(w, e->args[0], e->args[1]);
        put(w, "<mo>⌋</mo></mrow>");
        return;
    case EXPR_CALL:
        set_function(w, e);
        return;
    case EXPR_IF:
        set_cases(w, e);
        return;
    case EXPR_PAD:
        set_pad(w, e);
        return;
    case EXPR_REDUCE:
        set_reduce(w, e);
        return;
    default:
        set_operators(w, e, own);
    }
}

/* `level`: what stands around binds so tightly. */
static void set_expr(struct setter *w, const struct expr *e, int level) {
    int own = level_of(e);
    if (own < level)
        put(w, "<mrow><mo>(</mo>");
    set_bare(w, e, own);
    if (own < level)
        put(w, "<mo>)</mo></mrow>");
}

/* name with its indices, each a variable or a constant */
static void set_left(struct setter *w, const struct statement *s) {
    const struct tensor *t = &w->t->tensors[s->tensor];
    if (!t->rank) {
        put_name(w, t->name);
        return;
    }
    put(w, "<msub>");
    put_name(w, t->name);
    put(w, "<mrow>");
    for (size_t k = 0; k < t->rank; k++) {
        if (k)
            put(w, "<mo separator=\"true\">,</mo>");
        if (s->position[k] >= 0)
            put_name(w, s->index[s->position[k]]);
        else
            set_expr(w, s->constant[k], 0);
    }
    put(w, "</mrow></msub>");
}

void mathml_statement(const struct task *t, const struct statement *s, struct buf *out) {
    struct setter w = {.t = t, .out = out};
    for (size_t i = 0; i < s->nindex; i++)
        w.names[i] = s->index[i];
    put(&w, "<math display=\"block\"><mrow>");
    set_left(&w, s);
    put_operator(&w, "=");
    set_expr(&w, s->body, 0);
    put(&w, "</mrow></math>");
}

void mathml_ranges(const struct task *t, const struct statement *s, struct buf *out) {
    struct setter w = {.t = t, .out = out};
    const struct tensor *of = &t->tensors[s->tensor];
    if (!s->nindex)
        return;
    put(&w, "<math><mrow>");
    bool first = true;
    for (size_t k = 0; k < of->rank; k++) {
        if (s->position[k] < 0)
            continue;
        if (!first)
            put(&w, "<mo separator=\"true\">,</mo>");
        first = false;
        put_name(&w, s->index[s->position[k]]);
        put_operator(&w, "<");
        set_expr(&w, of->extent[k], LEVEL_SUM);
    }
    put(&w, "</mrow></math>");
}

void mathml_tensor(const struct task *t, size_t tensor, struct buf *out) {
    struct setter w = {.t = t, .out = out};
    const struct tensor *x = &t->tensors[tensor];
    put(&w, "<math><mrow>");
    put_name(&w, x->name);
    put_operator(&w, "∈");
    if (x->rank)
        put(&w, "<msup>");
    html_elementf(out, "mtext class=\"type\"", "%s", dtype_info(x->dtype)->name);
    if (x->rank)
        put(&w, "<mrow>");
    for (size_t k = 0; k < x->rank; k++) {
        if (k)
            put_operator(&w, "×");
        set_expr(&w, x->extent[k], LEVEL_LEAF);
    }
    put(&w, x->rank ? "</mrow></msup></mrow></math>" : "</mrow></math>");
}
