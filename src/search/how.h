/* The ways to search, and their sizes. */
#ifndef SEARCH_HOW_H
#define SEARCH_HOW_H

#include <stddef.h>

enum search_how {
    SEARCH_EVOLVE,
    SEARCH_RANDOM, /* any strategy, nothing is learnt: what the others are held against */
    SEARCH_ONCE,   /* the planner's proposals alone */
};

#define SEARCH_POPULATION 12

/* Candidates under way at a time: fewer would let compilers or devices wait, more would be made
 * from what is known too early. A matter of the population alone, so that a run is the same
 * everywhere. */
static inline size_t search_window(size_t population) {
    size_t n = population - population / 3;
    return n < 4 ? 4 : n;
}

#endif
