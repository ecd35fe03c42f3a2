/* Slices are compared and cut by length alone. Numbers are read by hand where the rules are ours
 * (integers) and by strtod where they are C's (doubles); the locale is always "C", because nothing
 * in the program calls setlocale. */
#include "base/str.h"

#include "base/arena.h"
#include "base/checked.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

str str_view(const char *c) {
    return c ? (str){c, strlen(c)} : (str){"", 0};
}

bool str_eq(str a, str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_is(str a, const char *c) {
    if (!c)
        return a.n == 0;
    size_t i = 0; /* no strlen: most comparisons end at the first byte */
    while (i < a.n && c[i] && c[i] == a.p[i])
        i++;
    return i == a.n && !c[i];
}

int str_cmp(str a, str b) {
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;
    if (order)
        return order < 0 ? -1 : 1;
    return (a.n > b.n) - (a.n < b.n);
}

bool str_starts(str s, str prefix) {
    return s.n >= prefix.n && str_eq((str){s.p, prefix.n}, prefix);
}

bool str_ends(str s, str suffix) {
    return s.n >= suffix.n && str_eq(str_from(s, s.n - suffix.n), suffix);
}

str str_from(str s, size_t at) {
    if (at >= s.n)
        return (str){s.n ? s.p + s.n : s.p, 0};
    return (str){s.p + at, s.n - at};
}

str str_cut(str s, size_t at, size_t n) {
    s = str_from(s, at);
    s.n = n < s.n ? n : s.n;
    return s;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

str str_trim(str s) {
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    while (s.n && is_blank(s.p[0]))
        s = str_from(s, 1);
    return s;
}

size_t str_find(str s, str what) {
    if (what.n == 0)
        return 0;
    const char *hit = s.n ? memmem(s.p, s.n, what.p, what.n) : NULL;
    return hit ? (size_t)(hit - s.p) : s.n;
}

bool str_word(str *rest, char sep, str *word) {
    if (rest->n == 0)
        return false;
    const char *end = memchr(rest->p, sep, rest->n);
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    *word = str_cut(*rest, 0, n);
    *rest = str_from(*rest, end ? n + 1 : n);
    return true;
}

str str_whole_lines(str s) {
    while (s.n && s.p[s.n - 1] != '\n')
        s.n--;
    return s;
}

bool str_line(str *rest, str *line) {
    if (!str_word(rest, '\n', line))
        return false;
    if (line->n && line->p[line->n - 1] == '\r')
        line->n--;
    return true;
}

size_t str_utf8(str s) {
    if (s.n == 0)
        return 0;
    const uint8_t *b = (const uint8_t *)s.p;
    if (b[0] < 0x80)
        return 1;
    /* The second byte's range rules out overlong forms, surrogates and what lies past U+10FFFF. */
    size_t n = b[0] >= 0xc2 && b[0] <= 0xdf ? 2 : (b[0] & 0xf0) == 0xe0 ? 3 : 0;
    if (b[0] >= 0xf0 && b[0] <= 0xf4)
        n = 4;
    if (n == 0 || s.n < n)
        return 0;
    uint8_t low = b[0] == 0xe0 ? 0xa0 : b[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = b[0] == 0xed ? 0x9f : b[0] == 0xf4 ? 0x8f : 0xbf;
    if (b[1] < low || b[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 0;
    }
    return n;
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 16;
}

static bool read_digits(str s, unsigned base, uint64_t *out) {
    uint64_t v = 0;
    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned d = (unsigned)digit_value(s.p[i]);
        if (d >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)d, &v))
            return false;
    }
    *out = v;
    return true;
}

bool str_to_u64(str s, uint64_t *out) {
    if (str_starts(s, S("0x")))
        return read_digits(str_from(s, 2), 16, out);
    return read_digits(s, 10, out);
}

bool str_to_i64(str s, int64_t *out) {
    bool minus = str_starts(s, S("-"));
    uint64_t v;
    if (!read_digits(str_from(s, minus), 10, &v) || v > (uint64_t)INT64_MAX + minus)
        return false;
    *out = minus ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

bool str_to_f64(str s, double *out) {
    char text[512]; /* longer literals exist, but nobody writes one */
    char *end;
    if (s.n == 0 || s.n >= sizeof text || !memchr("+-.0123456789", s.p[0], 13))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    double v = strtod(text, &end);
    if (end != text + s.n || !isfinite(v))
        return false;
    *out = v;
    return true;
}

/* An empty buf points at a literal, so that `p` is a C string from the start; cap == 0 says that
 * nothing is owned. cap counts the byte for the NUL. */
void buf_init(struct buf *b, size_t max) {
    *b = (struct buf){.p = "", .max = max};
}

void buf_release(struct buf *b) {
    if (b->cap)
        mem_free(b->p);
    buf_init(b, b->max);
}

void buf_clear(struct buf *b) {
    b->n = 0;
    b->failed = false;
    if (b->cap)
        b->p[0] = 0;
}

char *buf_reserve(struct buf *b, size_t n) {
    size_t need;
    if (b->failed || b->n > b->max || n > b->max - b->n || !add_size(b->n + n, 1, &need)) {
        b->failed = true;
        return NULL;
    }
    if (need <= b->cap)
        return b->p + b->n;
    size_t cap = b->cap < 32 ? 64 : b->cap > SIZE_MAX / 2 ? need : b->cap * 2;
    if (cap > b->max)
        cap = b->max + 1 ? b->max + 1 : b->max;
    if (cap < need)
        cap = need;
    b->p = mem_resize(b->cap ? b->p : NULL, cap);
    b->cap = cap;
    b->p[b->n] = 0;
    return b->p + b->n;
}

void buf_grown(struct buf *b, size_t n) {
    if (n == 0)
        return;
    b->n += n;
    b->p[b->n] = 0;
}

/* Whether n bytes and the NUL fit in what is allocated, which is never more than the maximum. */
static bool fits(const struct buf *b, size_t n) {
    return b->cap > b->n && n < b->cap - b->n && !b->failed;
}

void buf_put(struct buf *b, const void *p, size_t n) {
    char *to = !n ? NULL : fits(b, n) ? b->p + b->n : buf_reserve(b, n);
    if (!to)
        return;
    memcpy(to, p, n);
    buf_grown(b, n);
}

void buf_puts(struct buf *b, str s) {
    buf_put(b, s.p, s.n);
}

void buf_putc(struct buf *b, char c) {
    if (!fits(b, 1)) {
        buf_put(b, &c, 1);
        return;
    }
    b->p[b->n++] = c;
    b->p[b->n] = 0;
}

/* Marks that reverse the order in which what follows is shown. */
static bool turns_text(const unsigned char *p, size_t n) {
    return n == 3 && p[0] == 0xe2 &&
           ((p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae))) ||
            (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
}

/* Bytes of the printable text that s starts with. */
static size_t printable(str s) {
    size_t at = 0, n;
    while (at < s.n && (n = str_utf8(str_from(s, at)))) {
        unsigned char c = (unsigned char)s.p[at];
        bool control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
        if (control || (n == 2 && c == 0xc2 && (unsigned char)s.p[at + 1] < 0xa0) ||
            turns_text((const unsigned char *)s.p + at, n))
            break;
        at += n;
    }
    return at;
}

void buf_put_printable(struct buf *b, str s) {
    while (s.n) {
        size_t n = printable(s);
        buf_puts(b, str_cut(s, 0, n));
        s = str_from(s, n);
        if (!s.n)
            break;
        size_t bytes = str_utf8(s);
        if (bytes == 2)
            buf_printf(b, "\\u%04x", (unsigned char)s.p[1]);
        else if (bytes == 3)
            buf_printf(b, "\\u20%02x", ((unsigned)s.p[1] & 0x3f) << 6 | ((unsigned)s.p[2] & 0x3f));
        else if (!str_starts(s, S("\r\n")))
            buf_printf(b, "\\x%02x", (unsigned char)s.p[0]);
        s = str_from(s, bytes ? bytes : 1);
    }
}

void buf_put_shell_word(struct buf *b, str s) {
    bool plain = s.n > 0;
    for (size_t i = 0; i < s.n; i++)
        plain &= (s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'z') ||
                 (s.p[i] >= 'A' && s.p[i] <= 'Z') || memchr("_./:=,-", s.p[i], 7);
    if (plain) {
        buf_puts(b, s);
        return;
    }
    buf_putc(b, '\'');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\'')
            buf_puts(b, S("'\\''"));
        else
            buf_putc(b, s.p[i]);
    }
    buf_putc(b, '\'');
}

void buf_printf(struct buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *to = n < 0 ? NULL : buf_reserve(b, (size_t)n);
    if (to) {
        vsnprintf(to, (size_t)n + 1, fmt, again);
        buf_grown(b, (size_t)n);
    } else {
        b->failed = true;
    }
    va_end(again);
}

void buf_drop(struct buf *b, size_t n) {
    n = n < b->n ? n : b->n;
    if (n == 0)
        return;
    memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
    b->p[b->n] = 0;
}

str buf_str(const struct buf *b) {
    return (str){b->p ? b->p : "", b->n};
}
