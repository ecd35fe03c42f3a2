/* What each mechanism of the search is worth: variants with one of them switched off, replayed
 * against measured spaces with the same budget and the same seeds.
 *
 * History is never of the task itself: a pool is made of one cold replay of every other table, and
 * what is alike is retrieved from it (leave one out). */
#ifndef SEARCH_ABLATE_H
#define SEARCH_ABLATE_H

#include "archive/history.h"
#include "archive/table.h"
#include "search/evolve.h"

/* ---- one search against a measured space ----
 *
 * The same core, the same planner and crossover, answers from the table, no process, no clock. */

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

/* ---- variants ---- */

enum variant {
#define VARIANT(id, name, method, mechanisms, what) VARIANT_##id,
#include "search/variant.def"
#undef VARIANT
    VARIANT_COUNT
};
const char *variant_name(enum variant v);
const char *variant_meaning(enum variant v);

#define ABLATE_LONG  40   /* median need of random search from which a task is hard */
#define ABLATE_DRAWS 1000 /* of a bootstrap */

struct ablate_options {
    const struct table *tables;
    size_t n;
    struct agent *agent;
    size_t seeds, candidates, population; /* population 0: as search.h */
    double near; /* within this share of the best of the space is near enough */
};

/* A number with its 95% interval by bootstrap over the seeds. */
struct interval {
    double value, low, high;
};

struct ablate_cell {
    double *need;    /* [seeds] candidates until near the best; candidates + 1: not within budget */
    double *first_s; /* [seeds] best of the first generation */
    double *last_s;  /* [seeds] best at the budget's end */
    struct interval median; /* of need */
    double first, last;     /* medians, relative to the best of the space */
};
struct ablate_row {
    const struct table *table;
    size_t sources;  /* distinct */
    size_t near;     /* of them near the best */
    size_t recalled; /* runs of history */
    bool hard;       /* random search's median need is ABLATE_LONG or more */
    struct ablate_cell cell[VARIANT_COUNT];
    /* Mean logarithms over the seeds: how far the best of a first generation, a cold one and one
     * with history, is from the end of a cold run. */
    double cold_gap, warm_gap;
    double halfway; /* the share of the cold gap that history closes; NAN where there is none */
};
struct ablate {
    struct ablate_row *rows;
    size_t n;
    /* Need relative to random search's, geometric mean over hard tasks and over the others; NAN
     * where there are none. */
    struct interval hard[VARIANT_COUNT], easy[VARIANT_COUNT];
    size_t nhard;
    double halfway; /* of all gaps together; NAN where there is none */
    size_t searches;
};
/* In the arena. */
void ablate_run(const struct ablate_options *o, struct arena *a, struct ablate *out);

#endif
