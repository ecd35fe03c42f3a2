/* Messages are built in a local array first, because an argument may point into the very err that
 * is being filled. Nothing here allocates: an err can always be reported. */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX sizeof(((struct err *)0)->text)

/* Of a quoted line: how much is shown at most, and how much of that before the caret. */
enum { SHOWN_MOST = 100, SHOWN_BEFORE = 50 };

static bool store(struct err *e, enum err_kind kind, const char *text) {
    if (e) {
        e->kind = kind;
        snprintf(e->text, sizeof e->text, "%s", text);
    }
    return false;
}

/* A fixed array that is filled up to its end and keeps quiet about the rest. */
struct page {
    char text[TEXT_MAX];
    size_t n;
};

static void page_put(struct page *p, str s) {
    size_t room = sizeof p->text - 1 - p->n;
    size_t n = s.n < room ? s.n : room;
    if (n)
        memcpy(p->text + p->n, s.p, n);
    p->n += n;
    p->text[p->n] = 0;
}

bool err_set(struct err *e, enum err_kind kind, const char *fmt, ...) {
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return store(e, kind, text);
}

bool err_errno(struct err *e, enum err_kind kind, const char *fmt, ...) {
    int number = errno;
    char text[TEXT_MAX], reason[128];
    struct page p = {.n = 0};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    page_put(&p, str_view(text));
    page_put(&p, S(": "));
    page_put(&p, str_view(strerror_r(number, reason, sizeof reason)));
    return store(e, kind, p.text);
}

bool err_wrap(struct err *e, const char *fmt, ...) {
    char text[TEXT_MAX];
    struct page p = {.n = 0};
    va_list ap;
    if (!e)
        return false;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    page_put(&p, str_view(text));
    page_put(&p, S(": "));
    page_put(&p, str_view(e->text));
    return store(e, e->kind, p.text);
}

static bool starts_character(char c) {
    return ((unsigned char)c & 0xc0) != 0x80;
}

static size_t line_start(str text, size_t at) {
    while (at > 0 && text.p[at - 1] != '\n')
        at--;
    return at;
}

/* Columns count characters, as editors do and as the caret needs. */
void text_position(str text, size_t at, size_t *line, size_t *col) {
    at = at < text.n ? at : text.n;
    *line = *col = 1;
    for (size_t i = 0; i < at; i++)
        *line += text.p[i] == '\n';
    for (size_t i = line_start(text, at); i < at; i++)
        *col += starts_character(text.p[i]);
}

/* What a terminal would obey becomes `?`: control bytes, C1 controls, broken UTF-8. A tab becomes
 * one blank, which keeps the caret below its column. Returns the characters shown. */
static size_t page_put_shown(struct page *p, str s) {
    size_t shown = 0;
    while (s.n) {
        size_t n = str_utf8(s);
        unsigned char c = (unsigned char)s.p[0];
        bool control = n == 0 || c < 0x20 || c == 0x7f ||
                       (n == 2 && c == 0xc2 && (unsigned char)s.p[1] < 0xa0);
        n = n ? n : 1;
        page_put(p, c == '\t' ? S(" ") : control ? S("?") : str_cut(s, 0, n));
        s = str_from(s, n);
        shown++;
    }
    return shown;
}

static void page_repeat(struct page *p, char c, size_t n) {
    while (n--)
        page_put(p, (str){&c, 1});
}

/* The line around `at` and the caret below it, cut on both sides to what a terminal can show. */
static void page_put_quote(struct page *p, str text, size_t at, size_t n, size_t line) {
    size_t from = line_start(text, at), end = at;
    while (end < text.n && text.p[end] != '\n')
        end++;
    if (end > at && text.p[end - 1] == '\r')
        end--;
    size_t first = from, last = end;
    if (end - from > SHOWN_MOST) {
        first = at - from > SHOWN_BEFORE ? at - SHOWN_BEFORE : from;
        last = end - first > SHOWN_MOST ? first + SHOWN_MOST : end;
    }
    while (first < at && !starts_character(text.p[first]))
        first++;
    while (last < end && last > at && !starts_character(text.p[last]))
        last--;
    size_t marked = n < last - at ? n : last - at;
    while (marked && at + marked < last && !starts_character(text.p[at + marked]))
        marked++;
    str more_before = first > from ? S("...") : S(""), more_after = last < end ? S("...") : S("");

    char gutter[32];
    int width = snprintf(gutter, sizeof gutter, "%3zu", line);
    page_put(p, str_view(gutter));
    page_put(p, S(" | "));
    page_put(p, more_before);
    size_t before = more_before.n + page_put_shown(p, str_cut(text, first, at - first));
    size_t under = page_put_shown(p, str_cut(text, at, marked));
    page_put_shown(p, str_cut(text, at + marked, last - at - marked));
    page_put(p, more_after);
    page_put(p, S("\n"));
    page_repeat(p, ' ', (size_t)width);
    page_put(p, S(" | "));
    page_repeat(p, ' ', before);
    page_put(p, S("^"));
    page_repeat(p, '~', under > 1 ? under - 1 : 0);
}

bool err_at(struct err *e, str file, str text, size_t at, size_t n, const char *hint,
            const char *fmt, ...) {
    struct page p = {.n = 0};
    char part[1024];
    size_t line, col;
    va_list ap;
    at = at < text.n ? at : text.n;
    text_position(text, at, &line, &col);
    page_put_shown(&p, file);
    snprintf(part, sizeof part, ":%zu:%zu: ", line, col);
    page_put(&p, str_view(part));
    va_start(ap, fmt);
    vsnprintf(part, sizeof part, fmt, ap);
    va_end(ap);
    page_put_shown(&p, str_view(part));
    page_put(&p, S("\n"));
    page_put_quote(&p, text, at, n, line);
    if (hint) {
        page_put(&p, S("\nhint: "));
        page_put(&p, str_view(hint));
    }
    return store(e, ERR_INPUT, p.text);
}

_Noreturn void bug_at(const char *file, int line, const char *what) {
    fprintf(stderr, "cutepilot: bug: %s:%d: %s\n", file, line, what);
    abort();
}
