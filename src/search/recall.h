/* What history says about a task: runs of similar tasks (archive/history.h) turned into strategies
 * of this one, to begin with, and into precedents for credit. Private to the room. */
#ifndef SEARCH_RECALL_H
#define SEARCH_RECALL_H

#include "archive/history.h"
#include "search/credit.h"

#define RECALL_RUNS 8 /* a run begins with, at the most */

/* Only runs whose strategies have three quarters of this task's decisions: what is known of others
 * says too little. */
struct recalled {
    size_t nruns;         /* that it was made from */
    struct parent *seeds; /* what did best in each run, the most alike run first, then what came
                             second …; time_s is relative: 1 is the best of its run */
    size_t nseeds;
    struct precedent *precedents;
    size_t nprecedents;
};
/* In the arena. */
void recall_make(const struct history *retrieved, const struct briefing *b, struct arena *a,
                 struct recalled *out);

#endif
