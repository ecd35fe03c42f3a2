#include "ui/terminal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_MAX_BYTES ((size_t)1 << 20)
#define LEAST_COLUMNS  20

/* ---- the terminal ---- */

int terminal_columns(int fd) {
    struct winsize w;
    if (ioctl(fd, TIOCGWINSZ, &w) != 0 || w.ws_col == 0)
        return TERMINAL_USUAL;
    return w.ws_col > LEAST_COLUMNS ? w.ws_col : LEAST_COLUMNS;
}

bool terminal_is_live(int fd) {
    const char *term = getenv("TERM");
    return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

bool terminal_is_bold(int fd) {
    const char *no = getenv("NO_COLOR");
    return terminal_is_live(fd) && !(no && *no);
}

const char *terminal_arrow(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *v = getenv(names[i]);
        if (v && *v)
            return strstr(v, "UTF-8") || strstr(v, "utf8") || strstr(v, "utf-8") ? "→" : "->";
    }
    return "->";
}

/* ---- widths ---- */

struct range {
    uint32_t from, to;
};

/* Some narrow signs between the wide ones count as wide: a line is then shorter than it could be,
 * never longer. */
static const struct range wide[] = {
    {0x1100, 0x115f}, {0x231a, 0x23ff}, {0x25fd, 0x27bf},   {0x2b1b, 0x2b55},   {0x2e80, 0xa4cf},
    {0xa960, 0xa97c}, {0xac00, 0xd7a3}, {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},
    {0xff01, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x1b2ff}, {0x1f000, 0x1faff}, {0x20000, 0x3fffd},
};
static const struct range unseen[] = {
    {0x0300, 0x036f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200d},
    {0x2060, 0x2064}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};

static bool is_among(uint32_t c, const struct range *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (c >= list[i].from && c <= list[i].to)
            return true;
    return false;
}

/* Of the character of n bytes at p. */
static uint32_t decode(const char *p, size_t n) {
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (unsigned char)p[0] & first[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)p[i] & 0x3f);
    return c;
}

/* Bytes of the first character of s, and its columns. */
static size_t next_character(str s, size_t *columns) {
    size_t n = str_utf8(s);
    uint32_t c = n ? decode(s.p, n) : 0;
    *columns = is_among(c, wide, sizeof wide / sizeof *wide)         ? 2
               : is_among(c, unseen, sizeof unseen / sizeof *unseen) ? 0
                                                                     : 1;
    return n ? n : 1;
}

size_t text_columns(str s) {
    size_t sum = 0, columns;
    while (s.n) {
        s = str_from(s, next_character(s, &columns));
        sum += columns;
    }
    return sum;
}

/* Bytes of the longest beginning that fits. */
static size_t fitting(str s, size_t columns) {
    size_t at = 0, sum = 0, more;
    while (at < s.n) {
        size_t n = next_character(str_from(s, at), &more);
        if (sum + more > columns)
            break;
        sum += more;
        at += n;
    }
    return at;
}

/* ---- fitting ---- */

static void flatten(struct buf *b) {
    for (size_t i = 0; i < b->n; i++)
        if (b->p[i] == '\n' || b->p[i] == '\t')
            b->p[i] = ' ';
}

void text_fit(str s, size_t columns, struct buf *out) {
    struct buf line;
    buf_init(&line, LINE_MAX_BYTES);
    buf_put_printable(&line, str_cut(s, 0, LINE_MAX_BYTES / 8));
    flatten(&line);
    str text = buf_str(&line);
    size_t n = fitting(text, columns);
    if (n < text.n && columns > 0) {
        buf_puts(out, str_cut(text, 0, fitting(text, columns - 1)));
        buf_puts(out, S("…"));
    } else {
        buf_puts(out, text);
    }
    buf_release(&line);
}

/* Bytes of the next line: up to a blank, or as much as fits of a word that does not. */
static size_t next_line(str s, size_t columns) {
    size_t n = fitting(s, columns), end = n;
    if (n == s.n)
        return n;
    while (end > 0 && s.p[end] != ' ')
        end--;
    return end ? end : n ? n : s.n;
}

void text_wrap(str s, size_t columns, size_t indent, size_t used, struct buf *out) {
    struct buf text;
    buf_init(&text, LINE_MAX_BYTES);
    buf_put_printable(&text, str_cut(s, 0, LINE_MAX_BYTES / 8));
    flatten(&text);
    str rest = str_trim(buf_str(&text));
    size_t least = indent + LEAST_COLUMNS, at = used;
    columns = columns < least ? least : columns;
    do {
        size_t n = next_line(rest, at < columns ? columns - at : 0);
        buf_puts(out, str_cut(rest, 0, n));
        buf_putc(out, '\n');
        rest = str_trim(str_from(rest, n));
        for (at = 0; rest.n && at < indent; at++)
            buf_putc(out, ' ');
    } while (rest.n);
    buf_release(&text);
}

/* ---- what changed ---- */

void text_against(double time_s, double best_s, char out[24]) {
    double ratio = time_s / best_s;
    out[0] = 0;
    if (!isfinite(time_s) || !isfinite(best_s))
        return;
    if (ratio >= 2)
        snprintf(out, 24, "%.1fx slower", ratio);
    else if (fabs(ratio - 1) < 0.0005)
        snprintf(out, 24, "as fast");
    else
        snprintf(out, 24, "%.*f%% %s", fabs(ratio - 1) < 0.02, 100 * fabs(ratio - 1),
                 ratio > 1 ? "slower" : "faster");
}

/* "block=256" */
static bool split(str word, str *name, str *value) {
    size_t eq = str_find(word, S("="));
    *name = str_cut(word, 0, eq);
    *value = str_from(word, eq + 1);
    return eq > 0 && eq < word.n;
}

static bool find(str strategy, str name, str *value) {
    str word, found;
    while (str_word(&strategy, ' ', &word))
        if (split(word, &found, value) && str_eq(found, name))
            return true;
    return false;
}

static bool is_strategy(str text) {
    str word, name, value;
    bool all = text.n > 0;
    while (all && str_word(&text, ' ', &word))
        all = split(word, &name, &value);
    return all;
}

static void put_change(str from, str name, str value, struct buf *out) {
    str before;
    buf_puts(out, name);
    if (find(from, name, &before))
        buf_printf(out, " %.*s %s", STR_ARG(before), terminal_arrow());
    buf_printf(out, " %.*s", STR_ARG(value));
}

static bool differs(str from, str word, str *name, str *value) {
    str before;
    return split(word, name, value) && !(find(from, *name, &before) && str_eq(before, *value));
}

static size_t count_changes(str from, str to) {
    str word, name, value;
    size_t n = 0;
    while (str_word(&to, ' ', &word))
        n += differs(from, word, &name, &value);
    return n;
}

void text_changes(str from, str to, size_t columns, struct buf *out) {
    enum { MORE = sizeof " and 10 more" }; /* room for the count of those that are left out */
    size_t all = count_changes(from, to), shown = 0, room = 0;
    str word, name, value, rest = to;
    struct buf one;
    if (!is_strategy(to)) {
        text_fit(to, columns, out);
        return;
    }
    if (!all) {
        text_fit(S("the same decisions"), columns, out);
        return;
    }
    buf_init(&one, LINE_MAX_BYTES);
    while (str_word(&rest, ' ', &word)) {
        if (!differs(from, word, &name, &value))
            continue;
        buf_clear(&one);
        buf_puts(&one, shown ? S(", ") : S(""));
        put_change(from, name, value, &one);
        size_t more = text_columns(buf_str(&one));
        if (room + more + (shown + 1 < all ? MORE : 0) > columns)
            break;
        buf_puts(out, buf_str(&one));
        room += more;
        shown++;
    }
    buf_release(&one);
    if (shown == 0)
        buf_printf(out, "%zu decisions", all);
    else if (shown < all)
        buf_printf(out, " and %zu more", all - shown);
}
