/* See lex.h. Everything is bounds-checked against the text: it may be any bytes. */
#include "ptx/lex.h"

#include <string.h>

bool lex_fail(struct lexer *l, const char *what) {
    size_t n = 0;
    while (l->at + n < l->text.n && n < 60 && l->text.p[l->at + n] != '\n')
        n++;
    char near[64];
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)l->text.p[l->at + i];
        near[i] = c >= ' ' && c < 127 ? (char)c : '?';
    }
    near[n] = 0;
    return err_set(l->err, ERR_INPUT, "PTX line %u: %s at '%s'", l->line, what,
                   n ? near : "the end of the line");
}

static char lex_at(const struct lexer *l, size_t ahead) {
    return l->text.n - l->at > ahead ? l->text.p[l->at + ahead] : 0;
}

static void lex_step(struct lexer *l) {
    if (l->text.p[l->at] == '\n')
        l->line++;
    l->at++;
}

static void lex_comment(struct lexer *l) {
    if (lex_at(l, 1) == '/') {
        while (l->at < l->text.n && l->text.p[l->at] != '\n')
            l->at++;
        return;
    }
    l->at += 2;
    while (l->at < l->text.n && !(lex_at(l, 0) == '*' && lex_at(l, 1) == '/'))
        lex_step(l);
    l->at += l->text.n - l->at >= 2 ? 2 : l->text.n - l->at;
}

void lex_blank(struct lexer *l) {
    while (l->at < l->text.n) {
        char c = lex_at(l, 0);
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
            lex_step(l);
        else if (c == '/' && (lex_at(l, 1) == '/' || lex_at(l, 1) == '*'))
            lex_comment(l);
        else
            return;
    }
}

char lex_peek(struct lexer *l) {
    lex_blank(l);
    return lex_at(l, 0);
}

bool lex_take(struct lexer *l, char c) {
    if (lex_peek(l) != c || c == 0)
        return false;
    l->at++;
    return true;
}

bool lex_need(struct lexer *l, char c) {
    if (lex_take(l, c))
        return true;
    char what[] = "expected 'x'";
    what[10] = c;
    return lex_fail(l, what);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$';
}

str lex_name(struct lexer *l) {
    char c = lex_peek(l);
    str none = {l->text.p + l->at, 0};
    if ((!is_word(c) && c != '%') || is_digit(c))
        return none;
    size_t n = 1;
    while (is_word(lex_at(l, n)))
        n++;
    l->at += n;
    return (str){none.p, n};
}

str lex_dotted(struct lexer *l) {
    str none = {l->text.p + l->at, 0};
    if (lex_at(l, 0) != '.' || !is_word(lex_at(l, 1)))
        return none;
    size_t n = 1;
    for (;;) {
        if (is_word(lex_at(l, n)))
            n++;
        else if (lex_at(l, n) == ':' && lex_at(l, n + 1) == ':')
            n += 2;
        else
            break;
    }
    l->at += n;
    return (str){none.p + 1, n - 1};
}

bool lex_dotted_is(struct lexer *l, const char *word) {
    lex_blank(l);
    struct lexer before = *l;
    if (str_is(lex_dotted(l), word))
        return true;
    *l = before;
    return false;
}

bool lex_string(struct lexer *l, str *out) {
    if (!lex_need(l, '"'))
        return false;
    size_t start = l->at;
    while (l->at < l->text.n && l->text.p[l->at] != '"' && l->text.p[l->at] != '\n')
        l->at++;
    if (lex_at(l, 0) != '"')
        return lex_fail(l, "a string is not closed");
    *out = (str){l->text.p + start, l->at - start};
    l->at++;
    return true;
}

static int digit_of(char c) {
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

static bool digits(str s, unsigned base, uint64_t *out) {
    uint64_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned d = (unsigned)digit_of(s.p[i]);
        if (d >= base || __builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
            return false;
    }
    *out = v;
    return s.n > 0;
}

static bool integer(str s, uint64_t *out) {
    if (s.n > 1 && (s.p[s.n - 1] == 'U' || s.p[s.n - 1] == 'u'))
        s.n--;
    if (s.n > 2 && s.p[0] == '0' && (s.p[1] == 'x' || s.p[1] == 'X'))
        return digits(str_from(s, 2), 16, out);
    if (s.n > 2 && s.p[0] == '0' && (s.p[1] == 'b' || s.p[1] == 'B'))
        return digits(str_from(s, 2), 2, out);
    if (s.n > 1 && s.p[0] == '0')
        return digits(s, 8, out);
    return digits(s, 10, out);
}

static bool decimal_float(str s, struct lex_number *out) {
    double d;
    bool written_as_one = false; /* an integer that does not fit is an error, not a float */
    for (size_t i = 0; i < s.n; i++)
        written_as_one |= s.p[i] == '.' || s.p[i] == 'e' || s.p[i] == 'E';
    if (!written_as_one || !str_to_f64(s, &d))
        return false;
    memcpy(&out->bits, &d, 8);
    out->type = PTX_F64;
    return true;
}

static bool number_of(str s, struct lex_number *out) {
    *out = (struct lex_number){0, PTX_S64};
    if (s.n == 10 && s.p[0] == '0' && (s.p[1] == 'f' || s.p[1] == 'F')) {
        out->type = PTX_F32;
        return digits(str_from(s, 2), 16, &out->bits);
    }
    if (s.n == 18 && s.p[0] == '0' && (s.p[1] == 'd' || s.p[1] == 'D')) {
        out->type = PTX_F64;
        return digits(str_from(s, 2), 16, &out->bits);
    }
    return integer(s, &out->bits) || decimal_float(s, out);
}

static void negate(struct lex_number *n) {
    if (n->type == PTX_F32)
        n->bits ^= UINT64_C(1) << 31;
    else if (n->type == PTX_F64)
        n->bits ^= UINT64_C(1) << 63;
    else
        n->bits = 0 - n->bits;
}

bool lex_number(struct lexer *l, struct lex_number *out) {
    struct lexer before = *l;
    bool minus = lex_take(l, '-');
    lex_blank(l);
    size_t start = l->at, n = 0;
    bool hex = lex_at(l, 0) == '0' && (lex_at(l, 1) == 'x' || lex_at(l, 1) == 'X');
    while (is_word(lex_at(l, n)) || lex_at(l, n) == '.' ||
           ((lex_at(l, n) == '+' || lex_at(l, n) == '-') && n > 0 && !hex &&
            (lex_at(l, n - 1) == 'e' || lex_at(l, n - 1) == 'E')))
        n++;
    l->at += n;
    if (n == 0 || !number_of((str){l->text.p + start, n}, out)) {
        *l = before;
        return lex_fail(l, "not a number");
    }
    if (minus)
        negate(out);
    return true;
}

bool lex_u64(struct lexer *l, uint64_t max, uint64_t *out) {
    struct lexer before = *l;
    struct lex_number n;
    if (!lex_number(l, &n))
        return false;
    if (n.type != PTX_S64 || n.bits > max) {
        *l = before;
        return lex_fail(l, "number out of range");
    }
    *out = n.bits;
    return true;
}
