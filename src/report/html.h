/* HTML out of others' words. Everything that a page quotes (names, reasons, sources, models'
 * replies) passes html_text or html_json, and nothing else writes such text: what is markup in it
 * shows as the characters that it is made of. Private to the room. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/json.h"

/* For element content and for attributes in quotes. Control characters and what is not UTF-8 show
 * as escapes (str.h: buf_put_printable), and so do the characters that change the direction of the
 * text around them. */
void html_text(struct buf *out, str s);
/* At most so many bytes of a text, by whole characters, with "…" where some are left out. */
str html_cut(struct arena *a, str s, size_t most);
/* <TAG>text</TAG>; the tag may have attributes, of our own making: "td class=\"number\"". */
void html_element(struct buf *out, const char *tag, str text);
void html_elementf(struct buf *out, const char *tag, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* ` name="text"` */
void html_attribute(struct buf *out, const char *name, str text);
/* For the content of <script type="application/json">: no character that ends it. */
void html_json(struct buf *out, const json *j);
/* For a Content-Security-Policy. */
void html_base64(struct buf *out, digest d);

/* "3.67 µs", "1.2 ms"; "–" for what is no time */
str html_time(struct arena *a, double seconds);
/* "4.8 TB/s" for 4.8e12 and the unit "B/s" */
str html_quantity(struct arena *a, double value, const char *unit);
/* The same for marks of an axis, which are round: "20 µs", "10 T". */
str html_time_mark(struct arena *a, double seconds);
str html_quantity_mark(struct arena *a, double value, const char *unit);
/* Three significant digits, without an exponent up to 10^6. */
str html_number(struct arena *a, double value);
/* "27%"; "0.4%" where there would be no digit left */
str html_percent(struct arena *a, double share);
/* "1 kernel", "2 kernels" */
str html_count(struct arena *a, size_t n, const char *noun);
/* "2026-11-18 05:24 UTC", of seconds since 1970. */
str html_date(struct arena *a, double at);

#endif
