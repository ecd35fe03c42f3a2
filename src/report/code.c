#include "report/code.h"

#include "report/html.h"

#include <ctype.h>
#include <string.h>

static const char *const keywords[] = {
    "auto",     "bool",     "break", "case",    "char",     "class",  "const",    "constexpr",
    "continue", "default",  "do",    "double",  "else",     "enum",   "extern",   "false",
    "float",    "for",      "goto",  "if",      "inline",   "int",    "long",     "namespace",
    "operator", "return",   "short", "signed",  "sizeof",   "static", "struct",   "switch",
    "template", "this",     "true",  "typedef", "typename", "union",  "unsigned", "using",
    "void",     "volatile", "while"};

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_keyword(str s) {
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (str_is(s, keywords[i]))
            return true;
    return str_starts(s, S("__")) && str_ends(s, S("__"));
}

static size_t word_end(str s, size_t at) {
    bool number = isdigit((unsigned char)s.p[at]) != 0;
    while (at < s.n && (is_word(s.p[at]) || (number && s.p[at] == '.')))
        at++;
    return at;
}

static size_t quote_end(str s, size_t at) {
    char quote = s.p[at++];
    while (at < s.n && s.p[at] != quote)
        at += s.p[at] == '\\' ? 2 : 1;
    return at < s.n ? at + 1 : s.n;
}

/* Up to and with the end of the comment; the line's where it goes on. */
static size_t comment_end(str s, size_t at, bool *goes_on) {
    size_t end = str_find(str_from(s, at), S("*/"));
    *goes_on = end == s.n - at;
    return *goes_on ? s.n : at + end + 2;
}

/* The end of what begins at `at`, and its class; NULL: none. */
static size_t token_end(str s, size_t at, const char **class_, bool *in_comment) {
    char c = s.p[at];
    *class_ = NULL;
    if (c == '/' && at + 1 < s.n && s.p[at + 1] == '/') {
        *class_ = str_starts(str_from(s, at), S("//!")) ? "span class=\"plan\""
                                                        : "span class=\"comment\"";
        return s.n;
    }
    if (c == '/' && at + 1 < s.n && s.p[at + 1] == '*') {
        *class_ = "span class=\"comment\"";
        return comment_end(s, at + 2, in_comment);
    }
    if (c == '"' || c == '\'') {
        *class_ = "span class=\"string\"";
        return quote_end(s, at);
    }
    if (c == '#' && !str_trim(str_cut(s, 0, at)).n) {
        *class_ = "span class=\"keyword\"";
        return s.n;
    }
    if (!is_word(c)) {
        while (at < s.n && !is_word(s.p[at]) && !strchr("/\"'#", s.p[at]))
            at++;
        return at;
    }
    size_t end = word_end(s, at);
    if (isdigit((unsigned char)c))
        *class_ = "span class=\"literal\"";
    else if (is_keyword(str_cut(s, at, end - at)))
        *class_ = "span class=\"keyword\"";
    return end;
}

void code_line(struct buf *out, str line, bool *in_comment) {
    size_t at = 0;
    if (*in_comment) {
        at = comment_end(line, 0, in_comment);
        html_element(out, "span class=\"comment\"", str_cut(line, 0, at));
    }
    while (at < line.n) {
        const char *class_;
        size_t end = token_end(line, at, &class_, in_comment);
        end = end > at ? end : at + 1;
        str piece = str_cut(line, at, end - at);
        if (class_)
            html_element(out, class_, piece);
        else
            html_text(out, piece);
        at = end;
    }
}
