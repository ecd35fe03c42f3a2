/* One token at a time, straight from the text; the longest symbol that fits is taken. */
#include "spec/lex.h"

#include <string.h>

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
    if (is_name_part(peek(lx, n)) || peek(lx, n) == '.')
        return err_at(err, lx->file, lx->text, lx->at, n + 1,
                      "a product needs its sign: 2*x; names start with a letter",
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
        lx->joins = !strchr(")].", c);
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
