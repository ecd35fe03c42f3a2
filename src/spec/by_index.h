/* The terms of a reduction by index (pattern.h), sorted by the result that they belong to. Private
 * to the room.
 *
 * The numbers that indices of the result must equal are evaluated once for every term. A result has
 * a list of the terms whose numbers are its own, in the order of the terms; one whose number
 * carries an error is in the lists of all results that it may equal. Conditions are evaluated again
 * for the terms of a list, so a list may have terms that do not count, but never lacks one that
 * does: what comes out is what going through all terms would give, in the same order, to the last
 * bit. */
#ifndef SPEC_BY_INDEX_H
#define SPEC_BY_INDEX_H

#include "spec/pattern.h"
#include "spec/program.h"

struct nest;

/* Of one value of the variables that all results share. */
struct term_lists {
    int64_t *start;  /* of each list in `term`, and the end of the last */
    uint32_t *term;  /* numbers, counted as the loops go */
    int64_t ranges;  /* terms that belong to several lists */
    bool everything; /* too many of these: every result goes through all terms */
    bool unbounded;  /* … since what says where they belong is without bounds */
    bool failed;     /* no memory */
};

struct by_index_lists {
    const struct nest *n;
    const struct content *contents;
    struct program program[BY_INDEX_MOST];
    size_t nprograms;
    int64_t lo[TASK_MAX_VARS], length[TASK_MAX_VARS]; /* of the loops */
    struct term_lists *of;
    int64_t count, terms, results;
};

/* Whether lists pay for this reduction, with its axes and loops: it has results enough that share
 * its terms, and no more terms than can be numbered. Sets n->by. */
bool by_index_pays(struct nest *n, const struct expr *reduce);
/* False: no memory. */
bool by_index_make(struct by_index_lists *l, const struct nest *n, const struct content *contents,
                   unsigned threads);
void by_index_release(struct by_index_lists *l);
/* The terms of the result at the variables `at`; NULL: all of them. */
const uint32_t *by_index_terms(const struct by_index_lists *l, const int64_t *at, int64_t *count);
/* All of them, since what says which are its own has no bounds. */
bool by_index_unbounded(const struct by_index_lists *l, const int64_t *at);
/* Sets the loops' variables to those of a term. */
void by_index_place(const struct by_index_lists *l, uint32_t term, int64_t *at);
/* How many terms there are for one value of all axes' variables. */
double by_index_all_terms(const struct nest *n);

#endif
