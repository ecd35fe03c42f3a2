/* The parts of a run's report, each a section or more of the page. Private to the room. */
#ifndef REPORT_RUN_PAGE_H
#define REPORT_RUN_PAGE_H

#include "report/page.h"
#include "report/run.h"

/* run_charts.c */
void run_progress(struct page *p, const struct report_run *r);
void run_roofline(struct page *p, const struct report_run *r);
/* run_winner.c */
void run_lineage(struct page *p, const struct report_run *r, size_t plain);
void run_worth(struct page *p, const struct report_run *r);
/* run_source.c */
void run_source(struct page *p, const struct report_run *r);
/* run_evidence.c */
void run_matrix(struct page *p, const struct report_run *r);
void run_verdicts(struct page *p, const struct report_run *r);
/* Shapes that the task states and the winner refuses, in words; empty: none, or not known. */
str run_refused(const struct report_run *r, struct arena *a);
/* The largest error of the winner over its estimate; NAN: not known. `limit`: what is allowed. */
double run_worst(const struct report_run *r, double *limit);

/* Whose the times are: "estimated for an NVIDIA H200", "measured on …". */
str run_times(const struct report_run *r, struct arena *a);
/* The GPU's name, or the device's where that is not known. */
str run_gpu(const struct report_run *r);

#endif
