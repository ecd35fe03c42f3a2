/* What the simulator counted, in words: the part of a report that `sim` and `profile` share. All of
 * it is read from an evaluation's record (eval/outcome.h); nothing is run or computed anew. */
#ifndef UI_SIM_REPORT_H
#define UI_SIM_REPORT_H

#include "eval/outcome.h"
#include "spec/cost.h"

struct sim_report {
    struct arena *a;
    const struct record *record;
    const struct cost *cost;
    size_t nlaunches; /* of the plan */
    str source;       /* of the candidate, for the text of lines */
    unsigned lines;   /* the hottest so many */
};

/* Counters and estimate of launch i; nothing where the record has none. */
void sim_report_counts(const struct sim_report *r, size_t i);
/* The hottest lines of launch i, where the record has lines. */
void sim_report_lines(const struct sim_report *r, size_t i);

/* Lines by what they cost, most expensive first; the share is of the launch. */
struct sim_hot_line {
    struct sim_line line;
    double share;
};
struct sim_hot_line *sim_hot_lines(const struct record *r, size_t launch, struct arena *a,
                                   size_t *n);
/* A line of a text, from 1, without blanks around it; empty where there is none. */
str sim_source_line(str source, uint32_t line);

#endif
