/* Expressions of tasks and of launch plans: precedence climbing.
 *
 * Trees are walked by recursion everywhere, so their height is limited here, once, for all: both
 * the nesting of the text and the height of the tree (`a + a + a …` nests to the left). */
#include "spec/language.h"

#include <stdio.h>

static const struct binary binaries[] = {
    {"||", EXPR_OR, LEVEL_ANY},     {"&&", EXPR_AND, LEVEL_AND},
    {"==", EXPR_EQ, LEVEL_COMPARE}, {"!=", EXPR_NE, LEVEL_COMPARE},
    {"<", EXPR_LT, LEVEL_COMPARE},  {"<=", EXPR_LE, LEVEL_COMPARE},
    {">", EXPR_GT, LEVEL_COMPARE},  {">=", EXPR_GE, LEVEL_COMPARE},
    {"+", EXPR_ADD, LEVEL_SUM},     {"-", EXPR_SUB, LEVEL_SUM},
    {"*", EXPR_MUL, LEVEL_PRODUCT}, {"/", EXPR_DIV, LEVEL_PRODUCT},
    {"%", EXPR_MOD, LEVEL_PRODUCT}, {"//", EXPR_FLOORDIV, LEVEL_PRODUCT},
};

bool parse_next(struct parser *p) {
    p->end = p->tok.at + p->tok.len;
    return lex_next(&p->lx, &p->tok, p->err);
}

bool parse_fail(struct parser *p, size_t at, size_t len, const char *hint, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_at(p->err, p->lx.file, p->lx.text, at, len, hint, "%s", text);
}

static bool too_deep(struct parser *p, size_t at, size_t len, const char *hint) {
    char text[80];
    snprintf(text, sizeof text, p->language->deep, p->language->depth_most);
    return parse_fail(p, at, len, hint, "%s", text);
}

bool node_raise(struct parser *p, struct node *n, int height) {
    n->height = height > n->height ? height : n->height;
    return n->height <= p->language->depth_most || too_deep(p, n->e->at, 1, p->language->deep_hint);
}

bool node_make(struct parser *p, enum expr_kind kind, size_t at, const struct node *args, size_t n,
               struct node *out) {
    struct expr *e = arena_new_of(p->arena, struct expr);
    int height = 0;
    e->kind = kind;
    e->at = at;
    e->len = p->end - at;
    e->nargs = n;
    e->args = n ? arena_array(p->arena, struct expr *, n) : NULL;
    for (size_t i = 0; i < n; i++) {
        e->args[i] = args[i].e;
        height = args[i].height > height ? args[i].height : height;
    }
    *out = (struct node){e, 0};
    return node_raise(p, out, height + 1);
}

static bool parse_number(struct parser *p, struct node *out) {
    struct token t = p->tok;
    if (!parse_next(p) || !node_make(p, EXPR_NUMBER, t.at, NULL, 0, out))
        return false;
    out->e->number = t.number;
    out->e->integer = t.integer;
    out->e->integral = t.integral;
    out->e->value_kind = t.integral ? VALUE_INT : VALUE_REAL;
    return true;
}

static bool parse_primary(struct parser *p, struct node *out) {
    size_t open = p->tok.at;
    if (p->tok.kind == TOKEN_NUMBER)
        return parse_number(p, out);
    if (p->tok.kind == TOKEN_NAME)
        return p->language->name(p, out);
    if (!token_is(&p->tok, "("))
        return p->language->no_operand(p);
    return parse_next(p) && parse_level(p, LEVEL_ANY, out) && p->language->close(p, open);
}

static bool parse_prefix(struct parser *p, struct node *out) {
    struct token op = p->tok;
    bool minus = token_is(&op, "-");
    struct node arg;
    if (!minus && !token_is(&op, "!"))
        return parse_primary(p, out);
    if (++p->depth > p->language->depth_most)
        return too_deep(p, op.at, 1, p->language->deep_signs_hint);
    if (!parse_next(p) || !parse_prefix(p, &arg))
        return false;
    p->depth--;
    return node_make(p, minus ? EXPR_NEG : EXPR_NOT, op.at, &arg, 1, out) &&
           p->language->settle(p, out->e, minus ? "-" : "!");
}

static const struct binary *binary_find(const struct token *t) {
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
        if (token_is(t, binaries[i].symbol))
            return &binaries[i];
    return NULL;
}

const struct binary *binary_of(enum expr_kind kind) {
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
        if (binaries[i].kind == kind)
            return &binaries[i];
    return NULL;
}

/* Recursion for the right side goes up the levels, which are few: brackets alone are counted. */
static bool parse_operators(struct parser *p, int level, struct node *out) {
    size_t at = p->tok.at; /* with its brackets */
    const struct binary *op, *last = NULL;
    if (!parse_prefix(p, out))
        return false;
    while ((op = binary_find(&p->tok)) && op->level >= level) {
        struct token sign = p->tok;
        struct node args[2] = {*out};
        if (op->level == LEVEL_COMPARE && last && last->level == LEVEL_COMPARE)
            return parse_fail(p, sign.at, sign.len, p->language->chained_hint, "%s",
                              p->language->chained);
        if (!parse_next(p) || !parse_operators(p, op->level + 1, &args[1]))
            return false;
        if (!node_make(p, op->kind, at, args, 2, out) ||
            !p->language->settle(p, out->e, op->symbol))
            return false;
        last = op;
    }
    return !p->language->after || p->language->after(p);
}

bool parse_level(struct parser *p, int level, struct node *out) {
    if (++p->depth > p->language->depth_most)
        return too_deep(p, p->tok.at, p->tok.len ? p->tok.len : 1, p->language->deep_hint);
    if (!parse_operators(p, level, out))
        return false;
    p->depth--;
    return true;
}
