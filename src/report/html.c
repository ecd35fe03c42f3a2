#include "report/html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static bool is_plain(char c) {
    return (c >= ' ' && c < 0x7f && !strchr("&<>\"'", c)) || c == '\n' || c == '\t';
}

static const char *entity_of(char c) {
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* The code point of a character that turns the direction of text or hides a line break; 0: none.
 * They have three bytes each. */
static unsigned directional(str s) {
    static const unsigned from[] = {0x200e, 0x2028, 0x2066}, to[] = {0x200f, 0x202e, 0x2069};
    const unsigned char *p = (const unsigned char *)s.p;
    if (s.n < 3 || p[0] != 0xe2)
        return 0;
    unsigned code = 0x2000u | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        if (code >= from[i] && code <= to[i])
            return code;
    return 0;
}

static void put_escaped(struct buf *out, str s) {
    for (size_t i = 0; i < s.n;) {
        const char *entity = entity_of(s.p[i]);
        unsigned turn = directional(str_from(s, i));
        if (entity)
            buf_puts(out, str_view(entity));
        else if (turn)
            buf_printf(out, "\\u%04x", turn);
        else
            buf_putc(out, s.p[i]);
        i += turn ? 3 : 1;
    }
}

void html_text(struct buf *out, str s) {
    size_t plain = 0;
    while (plain < s.n && is_plain(s.p[plain]))
        plain++;
    buf_puts(out, str_cut(s, 0, plain));
    if (plain == s.n)
        return;
    struct buf shown;
    buf_init(&shown, 8 * s.n + 64);
    buf_put_printable(&shown, str_from(s, plain));
    put_escaped(out, buf_str(&shown));
    buf_release(&shown);
}

str html_cut(struct arena *a, str s, size_t most) {
    if (s.n <= most)
        return s;
    while (most && ((unsigned char)s.p[most] & 0xc0) == 0x80)
        most--;
    return arena_printf(a, "%.*s…", STR_ARG(str_cut(s, 0, most)));
}

void html_element(struct buf *out, const char *tag, str text) {
    size_t name = strcspn(tag, " ");
    buf_printf(out, "<%s>", tag);
    html_text(out, text);
    buf_printf(out, "</%.*s>", (int)name, tag);
}

void html_elementf(struct buf *out, const char *tag, const char *fmt, ...) {
    struct buf text;
    va_list ap;
    buf_init(&text, 1u << 20);
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    html_element(out, tag, buf_str(&text));
    buf_release(&text);
}

void html_attribute(struct buf *out, const char *name, str text) {
    buf_printf(out, " %s=\"", name);
    html_text(out, text);
    buf_putc(out, '"');
}

/* These characters stand in JSON's strings alone, where any may be written as its number. */
void html_json(struct buf *out, const json *j) {
    struct buf text;
    buf_init(&text, out->max);
    json_write(j, &text);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '<' || text.p[i] == '>' || text.p[i] == '&')
            buf_printf(out, "\\u%04x", (unsigned)text.p[i]);
        else
            buf_putc(out, text.p[i]);
    }
    out->failed |= text.failed;
    buf_release(&text);
}

void html_base64(struct buf *out, digest d) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < sizeof d.b; i += 3) {
        size_t n = sizeof d.b - i < 3 ? sizeof d.b - i : 3;
        unsigned bits = (unsigned)d.b[i] << 16;
        bits |= n > 1 ? (unsigned)d.b[i + 1] << 8 : 0;
        bits |= n > 2 ? d.b[i + 2] : 0;
        for (size_t k = 0; k < 4; k++)
            buf_putc(out, k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=');
    }
}

/* ---- numbers ---- */

static size_t scale_down(double *v) { /* how many thousandths */
    size_t u = 0;
    for (; *v > 0 && *v < 0.9995 && u < 3; u++)
        *v *= 1e3;
    return u;
}

static size_t scale_up(double *v) {
    size_t u = 0;
    for (; *v >= 999.5 && u < 6; u++)
        *v /= 1e3;
    return u;
}

static const char *const time_units[] = {"s", "ms", "µs", "ns"};
static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};

str html_time(struct arena *a, double s) {
    if (!(s >= 0 && s < 1e9))
        return S("–");
    size_t u = scale_down(&s);
    return arena_printf(a, "%.*s %s", STR_ARG(html_number(a, s)), time_units[u]);
}

str html_time_mark(struct arena *a, double s) {
    size_t u = scale_down(&s);
    return arena_printf(a, "%.3g %s", s, time_units[u]);
}

str html_quantity(struct arena *a, double v, const char *unit) {
    if (!isfinite(v))
        return S("–");
    size_t p = scale_up(&v);
    return arena_printf(a, "%.*s %s%s", STR_ARG(html_number(a, v)), prefixes[p], unit);
}

str html_quantity_mark(struct arena *a, double v, const char *unit) {
    size_t p = scale_up(&v);
    return arena_printf(a, "%.3g %s%s", v, prefixes[p], unit);
}

str html_number(struct arena *a, double v) {
    double size = fabs(v);
    if (!isfinite(v))
        return S("–");
    if (size >= 1e6 || (size > 0 && size < 1e-3))
        return arena_printf(a, "%.2e", v);
    int after = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 || v == 0 ? 2 : 3;
    return arena_printf(a, "%.*f", v == 0 ? 0 : after, v);
}

str html_percent(struct arena *a, double share) {
    if (!isfinite(share))
        return S("–");
    return arena_printf(a, share > 0 && share < 0.0095 ? "%.1f%%" : "%.0f%%", 100 * share);
}

str html_count(struct arena *a, size_t n, const char *noun) {
    return arena_printf(a, "%zu %s%s", n, noun, n == 1 ? "" : "s");
}

str html_date(struct arena *a, double at) {
    char text[64];
    time_t seconds = (time_t)at;
    struct tm tm;
    if (!(at > 0 && at < 1e11) || !gmtime_r(&seconds, &tm) ||
        !strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &tm))
        return S("–");
    return arena_str(a, str_view(text));
}
