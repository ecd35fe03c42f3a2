/* Slices, growable buffers with a ceiling, and the parsing of numbers.
 *
 * A `str` borrows bytes that somebody else owns; it is not NUL-terminated. A `struct buf` owns heap
 * bytes, is born with a maximum size and never grows past it: what does not fit sets `failed`,
 * which sticks, so that a caller appends freely and checks once at the end. `failed` says "too
 * large" and nothing else: running out of memory ends the process, as in an arena. The content of a
 * buf is always followed by a NUL that is not counted in `n`. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *p;
    size_t n;
} str;

/* S("literal") */
#define S(lit) ((str){"" lit, sizeof(lit) - 1})
/* For printf: printf("%.*s", STR_ARG(s)) */
#define STR_ARG(s) (int)((s).n > 1u << 20 ? 1u << 20 : (s).n), (s).p

str str_view(const char *c); /* borrows a C string; NULL gives the empty slice */
bool str_eq(str a, str b);
bool str_is(str a, const char *c);
int str_cmp(str a, str b); /* bytewise, shorter first */
bool str_starts(str s, str prefix);
bool str_ends(str s, str suffix);
str str_from(str s, size_t at);                /* the rest from `at` (clamped) */
str str_cut(str s, size_t at, size_t n);       /* a piece (clamped) */
str str_trim(str s);                           /* without blanks, tabs, CR and LF at both ends */
size_t str_find(str s, str what);              /* position, or s.n when absent */
bool str_line(str *rest, str *line);           /* next line without its end; false at the end */
str str_whole_lines(str s);                    /* up to and with the last end of a line */
bool str_word(str *rest, char sep, str *word); /* next piece up to `sep`; false at the end */
size_t str_utf8(str s); /* bytes of the UTF-8 character s starts with; 0 when it is not one */

/* Whole slice or nothing: no blanks, no trailing junk, no overflow. */
bool str_to_i64(str s, int64_t *out);
bool str_to_u64(str s, uint64_t *out); /* decimal or 0x… */
bool str_to_f64(str s, double *out);   /* C floating syntax, finite */

struct buf {
    char *p;
    size_t n, cap, max;
    bool failed;
};

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);
void buf_clear(struct buf *b); /* empties, keeps the memory, forgets `failed` */
void buf_put(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, str s);
void buf_putc(struct buf *b, char c);
/* The text with what a terminal would obey shown as an escape: control characters but newline and
 * tab as \x1b, the second set of them (U+0080 to U+009F) as \u009b, marks that reverse the order of
 * the text (U+202E and the like) as \u202e, bytes that are not UTF-8 as \x9b. A carriage return
 * before a newline is left out. */
void buf_put_printable(struct buf *b, str s);
void buf_put_shell_word(struct buf *b, str s); /* in quotes where a shell needs them */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap);
char *buf_reserve(struct buf *b,
                  size_t n);             /* n writable bytes at the end, or NULL; see buf_grown */
void buf_grown(struct buf *b, size_t n); /* n of the reserved bytes were written */
void buf_drop(struct buf *b, size_t n);  /* removes n bytes from the front */
str buf_str(const struct buf *b);

#endif
