/* The rounds of `refine`, without input and output: one candidate that gets better, the stages it
 * goes through, what was tried, and when to stop. Private to the room; the policy in refine.c goes
 * by it.
 *
 * A round starts from the best candidate and ends in one of the ways below. Rounds without gain
 * wear a stage's patience down; the last stage worn down is a plateau. What a round comes to is
 * remembered as a line that later rounds are shown, so that it is not proposed again. Where
 * candidates are counted, a stage but the last has at most half of those that are left when it
 * begins, so that a short run comes to all of them. Profiling
 * facts are given now, never, or (delayed) once the structure has settled: before that they lead a
 * model to polish the wrong kernel. */
#ifndef SEARCH_REFINE_H
#define SEARCH_REFINE_H

#include "search/search.h"

#define ROUNDS_GAIN 0.005 /* less than this share of the time is no gain */

enum round_end {
    ROUND_FASTER,     /* the new best */
    ROUND_NO_GAIN,    /* right, and not faster: dropped */
    ROUND_REJECTED,   /* not right after all repairs: dropped */
    ROUND_SEEN,       /* a source that was tried before */
    ROUND_UNANSWERED, /* no usable reply */
    ROUND_DONE,       /* the optimizer has nothing left for the stage: the next one begins */
};

struct rounds {
    struct arena *mem;      /* of what was tried */
    enum workload workload; /* how patient a stage is */
    enum profiling profiling;
    double stop_share; /* ends at floor / best >= stop_share */
    enum stage stage;
    size_t stale;        /* rounds of the stage without gain, one after the other */
    bool begun;          /* the stage has had a round */
    uint64_t left, ends; /* candidates of the budget, now and when the stage is over */
    double best_s, floor_s;
    str tried[24]; /* the latest, oldest first */
    size_t ntried, forgotten;
    size_t unanswered;   /* rounds in a row */
    const char *stopped; /* "limit", "plateau", "no usable reply"; NULL: goes on */
};

/* The first candidate that was accepted; floor_s: the least time there can be. */
void rounds_start(struct rounds *r, double time_s, double floor_s);
/* Before a round; left: candidates of the budget, NO_BUDGET where they are not counted. */
void rounds_begin(struct rounds *r, uint64_t left);
size_t rounds_left(const struct rounds *r); /* of the stage, without gain */
/* Whether the stage's share of the budget is over before: so many candidates. */
bool rounds_share_left(const struct rounds *r, size_t *candidates);
size_t rounds_left_in_all(const struct rounds *r); /* … of all stages that are left */
/* Whether a time counts as a gain over the best. */
bool rounds_gain(const struct rounds *r, double time_s);
/* time_s: of FASTER and NO_GAIN. why: the verdict of REJECTED; of NO_GAIN where its time goes,
 * where that may be told. */
void rounds_end(struct rounds *r, enum round_end end, double time_s, str idea, str why);
bool rounds_facts(const struct rounds *r); /* whether profile facts are given now */
void rounds_tried(const struct rounds *r, struct buf *out);

#endif
