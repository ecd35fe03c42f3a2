/* A search against a measured space instead of a device: the same core, the same planner and
 * crossover, answers from the table, no process, no clock. */
#ifndef SEARCH_REPLAY_H
#define SEARCH_REPLAY_H

#include "archive/history.h"
#include "archive/table.h"
#include "search/evolve.h"

struct replay_options {
    const struct table *table;
    struct agent *agent; /* one that answers from inside the call */
    uint64_t seed;
    enum search_method method;
    bool roofline;
    bool unplanned;                /* no proposals of the planner */
    bool uncredited;               /* children by crossover alone */
    const struct history *history; /* retrieved for the task; NULL: none */
    size_t population;             /* 0: as search.h */
    size_t candidates;             /* budget; not 0 */
};

struct replay_trial {
    size_t row;
    double time_s, best_s; /* best so far */
};
struct replay {
    struct replay_trial *trials; /* distinct sources, in order of submission; in the arena */
    size_t n;
    size_t nplan; /* of them proposed by the planner, at the most */
};
void replay_run(const struct replay_options *o, struct arena *a, struct replay *out);

/* Candidates until one was within `share` of the best of the table; `otherwise` where none was. */
size_t replay_need(const struct replay *r, const struct table *t, double share, size_t otherwise);
/* The run as history has it. */
void replay_history(const struct replay *r, const struct table *t, struct arena *a,
                    struct history_run *out);

#endif
