/* How a run came to its winner, from what the archive holds: the kernels it descends from, and what
 * its decisions are worth by the kernels that differ from others in one of them alone. Nothing is
 * run. Private to the room. */
#ifndef REPORT_STORY_H
#define REPORT_STORY_H

#include "report/run.h"

enum story_link {
    LINK_NONE,    /* the first of the line */
    LINK_PARENT,  /* made from it: of two parents the faster */
    LINK_REPAIR,  /* a repair of it */
    LINK_NEAREST, /* made from all that was known: the earlier kernel that differs in the fewest
                     decisions */
    LINK_PLAIN,   /* planned: the plain kernel, for comparison */
};
struct story_step {
    size_t at, from; /* candidates; from: RUN_NONE without a link */
    enum story_link link;
};

/* The plain kernel: the accepted candidate with every decision at its default. RUN_NONE: it was not
 * tried or not accepted, or the defaults are not known. */
size_t story_plain(const struct report_run *r);

/* From the first to the winner. */
#define STORY_MOST 64
size_t story_lineage(const struct report_run *r, size_t plain, struct story_step out[STORY_MOST]);

/* The winner's value of a decision against another one: the other's time over the winner's, over
 * pairs of accepted candidates that are alike in all other decisions. */
struct story_worth {
    size_t decision;
    int64_t other;
    double times, least, most; /* median and range */
    size_t pairs;
};
/* The most valuable first. */
struct story_worth *story_worth(const struct report_run *r, struct arena *a, size_t *n);

/* A decision's value as strategies write it. */
str story_value(const struct catalogue *c, size_t decision, int64_t value, struct arena *a);

#endif
