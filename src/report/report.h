/* Reports: what a run or a suite came to, as one HTML file that a person reads (docs/REPORT.md).
 *
 * A report is a function of the folder alone. It is opened for reading, nothing is compiled, run or
 * fetched, and the file loads nothing: style, script, charts and data are in it. It reads without
 * its script, which adds sorting, filtering, and words about the point that one looks at. What
 * others wrote (names, sources, models' replies) shows as text; the page's policy lets no script
 * run but its own. Page, style and script are assets (assets/report). */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/arena.h"
#include "base/err.h"

#define REPORT_MEMORY   ((size_t)2 << 30)
#define REPORT_FILE     "report.html"
#define REPORT_PAGE_MAX ((size_t)256 << 20)

/* The report of the run in a folder, finished or not. `assets` may be NULL. */
bool report_run(const char *folder, const char *assets, struct buf *out, struct err *err);

/* The report of a suite: of what is in its suite.json. `page`: the file that it is going to be, by
 * which the runs' own reports are linked where they exist. */
bool report_suite(const char *folder, const char *assets, const char *page, struct buf *out,
                  struct err *err);
bool report_is_suite(const char *folder);
/* The folders of its runs, those that have an archive. */
bool report_suite_runs(const char *folder, struct arena *a, const char ***runs, size_t *n,
                       struct err *err);

#endif
