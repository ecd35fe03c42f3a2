/* The winner: the fastest accepted candidate that holds a second time, on a seed it has not met,
 * and (measured on a GPU) under the simulator's checkers. One that the simulator cannot run ranks
 * below those that it watched, and is labelled. Private to the room. */
#ifndef SEARCH_FINALIST_H
#define SEARCH_FINALIST_H

#include "archive/archive.h"
#include "eval/eval.h"
#include "search/search.h"

struct finalist {
    uint64_t ordinal;
    struct strategy strategy; /* as its code has it */
    double time_s;
    str source;
    struct record *record; /* owned; NULL once it was refused or given away */
    bool unwatched;        /* right on the GPU, and the simulator cannot run it */
    bool uncovered;        /* something that it does at the task's own shape was not judged */
};

typedef void finalist_note_fn(void *ctx, str text);
struct finalist_options {
    const struct evaluator_options *eo;
    struct archive *archive; /* NULL: nothing is kept */
    struct arena *mem;
    finalist_note_fn *note; /* a candidate that did not hold */
    void *ctx;
};

/* *which: the winner's place in the list, its record with "confirmed" in it; n: there is none. */
bool finalist_choose(const struct finalist_options *o, struct finalist *list, size_t n,
                     size_t *which, struct err *err);
/* The winner as the result of the search; its record moves there. */
void finalist_take(struct finalist *f, struct arena *a, struct search_best *best);

#endif
