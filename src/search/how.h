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

/* Strategies that the planner is asked for: what follows is made from what they came to, and two
 * thirds of a generation are enough to begin with. */
static inline size_t search_plan(size_t population) {
    return population - population / 3;
}

/* Candidates under way at a time: fewer would let compilers or devices wait, more would be made
 * from what is known too early. Many workers get a whole population at the most. */
static inline size_t search_window(size_t population, size_t workers) {
    size_t n = population / 2, busy = 2 * workers < population ? 2 * workers : population;
    n = n < busy ? busy : n;
    return n < 4 ? 4 : n;
}

#endif
