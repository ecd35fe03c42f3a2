/* A page under construction: sections in order, a list of them for the reader, and the data. Parts
 * of a page write to `body`, all words of others through html.h. Private to the room. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "report/html.h"
#include "report/report.h"

#define PAGE_MAX          REPORT_PAGE_MAX
#define PAGE_MAX_SECTIONS 24

struct page {
    struct buf body;
    json *data;   /* what the page shows, for its script and for other programs */
    json *charts; /* in it: the points of each chart, by its id */
    struct arena *mem;
    str title, kind, heading, subtitle; /* kind: "run" or "suite" */
    struct page_section {
        const char *id, *title;
    } sections[PAGE_MAX_SECTIONS];
    size_t n;
};

void page_init(struct page *p, struct arena *mem);
void page_release(struct page *p);
/* Markup of our own. */
void page_put(struct page *p, const char *markup);
void page_putf(struct page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Ends the section before it. */
void page_section(struct page *p, const char *id, const char *title);
/* <dt>term</dt><dd>text</dd> */
void page_fact(struct page *p, const char *term, str text);
/* A number to be seen from afar, with what it is and a remark. */
void page_tile(struct page *p, const char *label, str value, str remark);
/* The whole file. */
bool page_write(struct page *p, const char *assets, struct buf *out, struct err *err);

#endif
