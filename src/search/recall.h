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
    size_t nruns;        /* that it was made from */
    struct tried *seeds; /* what did best in each run, the most alike run first, then what came
                            second … */
    size_t nseeds;
    struct precedent *precedents;
    size_t nprecedents;
};
/* In the arena. */
void recall_make(const struct history *h, const struct briefing *b, struct arena *a,
                 struct recalled *out);

/* Completes the briefing of a run with what it begins with: of the archive where it has begun
 * before, of the pools otherwise. False: failed. */
struct driver;
bool recall_brief(struct driver *d);
/* Adds the run to the user's pool: its strategies as their code has them, each with its time
 * (INFINITY: not accepted), in order of submission. Nothing is added of a run without a kernel, or
 * of an interrupted one, which will be gone on with. A pool that cannot be written is said. */
void recall_add(const struct driver *d, const struct tried *list, size_t n);

#endif
