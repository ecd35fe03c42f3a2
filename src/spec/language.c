/* Expressions of tasks and of launch plans: precedence climbing.
 *
 * Trees are walked by recursion everywhere, so their height is limited here, once, for all: both
 * the nesting of the text and the height of the tree (`a + a + a …` nests to the left). */
#include "spec/language.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- tokens: straight from the text; the longest symbol that fits is taken ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
static bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_name_part(char c) {
    return is_name_start(c) || is_digit(c);
}

static char peek(const struct lexer *lx, size_t ahead) {
    return lx->at + ahead < lx->end ? lx->text.p[lx->at + ahead] : 0;
}

struct lexer lex_start(const struct lex_rules *rules, str file, str text) {
    return (struct lexer){.rules = rules, .file = file, .text = text, .end = text.n};
}

bool token_is(const struct token *t, const char *symbol) {
    return t->kind == TOKEN_SYMBOL && str_is(t->text, symbol);
}

bool token_is_name(const struct token *t, const char *name) {
    return t->kind == TOKEN_NAME && str_is(t->text, name);
}

/* True when it stands before a line end that counts. */
static bool skip_blanks(struct lexer *lx) {
    for (; lx->at < lx->end; lx->at++) {
        char c = lx->text.p[lx->at];
        if (c == '#' && lx->rules->file)
            while (lx->at + 1 < lx->end && lx->text.p[lx->at + 1] != '\n')
                lx->at++;
        else if (c == '\n' && lx->started && !lx->joins && lx->open == 0)
            return true;
        else if (!strchr(lx->rules->file ? " \t\r\n" : " \t\r\v\f", c) || !c)
            return false;
    }
    return false;
}

static bool give(struct lexer *lx, struct token *out, enum token_kind kind, size_t len) {
    out->kind = kind;
    out->at = lx->at;
    out->len = len;
    out->text = str_cut(lx->text, lx->at, len);
    lx->at += len;
    lx->started = kind != TOKEN_LINE;
    lx->joins = false;
    return true;
}

static bool lex_name(struct lexer *lx, struct token *out, struct err *err) {
    size_t n = 0;
    while (is_name_part(peek(lx, n)))
        n++;
    if (n > lx->rules->name_most)
        return err_at(err, lx->file, lx->text, lx->at, n, NULL,
                      "a name of %zu characters; at most %zu are allowed", n, lx->rules->name_most);
    return give(lx, out, TOKEN_NAME, n);
}

static size_t count_digits(const struct lexer *lx, size_t from) {
    size_t n = 0;
    while (is_digit(peek(lx, from + n)))
        n++;
    return n;
}

bool lex_task_number(struct lexer *lx, struct token *out, struct err *err) {
    size_t n = count_digits(lx, 0);
    bool integral = true;
    if (peek(lx, n) == '.') {
        integral = false;
        n += 1 + count_digits(lx, n + 1);
    }
    if (peek(lx, n) == 'e' || peek(lx, n) == 'E') {
        size_t sign = peek(lx, n + 1) == '+' || peek(lx, n + 1) == '-';
        size_t digits = count_digits(lx, n + 1 + sign);
        if (digits) {
            integral = false;
            n += 1 + sign + digits;
        }
    }
    bool dots = integral ? false : lx->text.p[lx->at + n - 1] == '.' && peek(lx, n) == '.';
    if (is_name_part(peek(lx, n)) || peek(lx, n) == '.')
        return err_at(err, lx->file, lx->text, lx->at, n + 1,
                      dots ? "a range is stated by its ends: sum(j <= k < N) x[k], let v[i < N] = …"
                           : "a product needs its sign: 2*x; names start with a letter",
                      "a number runs into what follows it");
    str s = str_cut(lx->text, lx->at, n);
    out->integral = integral;
    if (integral ? !str_to_i64(s, &out->integer) : !str_to_f64(s, &out->number))
        return err_at(err, lx->file, lx->text, lx->at, n, NULL, "the number does not fit %s",
                      integral ? "a 64-bit integer" : "a double");
    if (integral)
        out->number = (double)out->integer;
    return give(lx, out, TOKEN_NUMBER, n);
}

bool lex_plan_number(struct lexer *lx, struct token *out, struct err *err) {
    size_t n = 0;
    uint64_t v;
    while (is_name_part(peek(lx, n)))
        n++;
    str s = str_cut(lx->text, lx->at, n);
    if (!str_to_u64(s, &v) || v > INT64_MAX)
        return err_at(err, lx->file, lx->text, lx->at, n,
                      "plan arithmetic has 64-bit integers only", "bad number '%.*s'", STR_ARG(s));
    out->integral = true;
    out->integer = (int64_t)v;
    out->number = (double)v;
    return give(lx, out, TOKEN_NUMBER, n);
}

static bool lex_string(struct lexer *lx, struct token *out, struct err *err) {
    size_t n = 1;
    for (; lx->at + n < lx->end && peek(lx, n) != '"'; n++) {
        if ((unsigned char)peek(lx, n) < 0x20)
            break;
        if (peek(lx, n) == '\\' && (peek(lx, n + 1) == '"' || peek(lx, n + 1) == '\\'))
            n++;
    }
    if (peek(lx, n) != '"' || lx->at + n >= lx->end)
        return err_at(err, lx->file, lx->text, lx->at, n,
                      "a text stands between double quotes on one line",
                      "the text is not closed by a quote");
    str inside = str_cut(lx->text, lx->at + 1, n - 1);
    give(lx, out, TOKEN_STRING, n + 1);
    out->text = inside;
    return true;
}

static bool lex_symbol(struct lexer *lx, struct token *out, struct err *err) {
    str rest = str_cut(lx->text, lx->at, lx->end - lx->at), all = str_view(lx->rules->symbols), s;
    while (str_word(&all, ' ', &s)) {
        if (!str_starts(rest, s))
            continue;
        char c = rest.p[0];
        give(lx, out, TOKEN_SYMBOL, s.n);
        lx->joins = !strchr(")].;}", c);
        if (c == '(' || c == '[')
            lx->open++;
        else if ((c == ')' || c == ']') && lx->open)
            lx->open--;
        return true;
    }
    size_t n = str_utf8(rest);
    return err_at(err, lx->file, lx->text, lx->at, n ? n : 1, NULL, "%s", lx->rules->stray);
}

bool lex_next(struct lexer *lx, struct token *out, struct err *err) {
    *out = (struct token){.kind = TOKEN_END};
    if (skip_blanks(lx))
        return give(lx, out, TOKEN_LINE, 1);
    if (lx->at >= lx->end)
        return give(lx, out, TOKEN_END, 0);
    char c = peek(lx, 0);
    if (is_name_start(c))
        return lex_name(lx, out, err);
    if (is_digit(c) || (c == '.' && is_digit(peek(lx, 1)) && lx->rules->file))
        return lx->rules->number(lx, out, err);
    if (c == '"' && lx->rules->file)
        return lex_string(lx, out, err);
    return lex_symbol(lx, out, err);
}

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
    const struct calling *c = p->calling;
    if (c && c->library)
        return err_at(p->err, p->task->file, p->task->text, c->at, c->len, hint,
                      "%s, in the function '%.*s'", text, STR_ARG(c->name));
    size_t line, col;
    if (!c || c->len == 0)
        return err_at(p->err, p->lx.file, p->lx.text, at, len, hint, "%s", text);
    text_position(p->lx.text, c->at, &line, &col);
    return err_at(p->err, p->lx.file, p->lx.text, at, len, hint,
                  "%s, in the function '%.*s' called at %zu:%zu", text, STR_ARG(c->name), line,
                  col);
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
    e->calling = p->calling;
    p->expanded += p->calling != NULL;
    if (p->calling && p->calling->library) {
        e->at = p->calling->at;
        e->len = p->calling->len;
    }
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
