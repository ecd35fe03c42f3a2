/* The core of `evolve`, without input and output: which strategies a generation has, given the seed
 * and what the earlier ones came to. Private to the room; search.c drives it.
 *
 * The driver's cycle, one generation:
 *     n = evolve_begin(e);                      0: it ended, evolve_stopped says why
 *     for each slot < n:
 *         propose a strategy (planner, or crossover of evolve_parents)
 *         evolve_claim                          an untried strategy, near the proposal
 *         write its source; when it cannot be written, claim again
 *         evolve_submit                         it is a candidate now, with the next ordinal
 *     evolve_settle for every candidate, in order of their ordinals
 *
 * No strategy is claimed twice in a run. Ties in time go to the lower ordinal. */
#ifndef SEARCH_EVOLVE_H
#define SEARCH_EVOLVE_H

#include "agent/agent.h"

struct evolve_options {
    const struct catalogue *catalogue;
    struct ground ground;
    uint64_t seed;
    size_t population, plateau; /* not 0 */
    uint64_t candidates;        /* budget; 0: none */
    double limit_s, stop_share; /* ends at limit_s / best >= stop_share; limit_s INFINITY: never */
};

struct evolve_trial {
    struct strategy strategy;
    struct strategy aligned;            /* as its code has it: what parents and credit go by */
    uint64_t ordinal, generation, slot; /* ordinal: of what was submitted */
    bool submitted, settled;
    double time_s; /* INFINITY: not accepted, or not known */
};

struct evolve {
    struct evolve_options o;
    struct evolve_trial *trials; /* in order of claims; what could not be written stays too */
    size_t n, cap;
    uint64_t generation; /* of the slots being filled, from 0 */
    bool begun;
    uint64_t submitted, settled;
    uint64_t first;     /* ordinal of the generation's first candidate */
    size_t stale;       /* generations without gain */
    double best_s;      /* INFINITY: none */
    size_t best;        /* its trial */
    double gain_from_s; /* best at the last generation that counted as a gain */
    const char *stopped;
};

void evolve_init(struct evolve *e, const struct evolve_options *o);
void evolve_release(struct evolve *e);

/* Slots of the next generation. Every candidate so far must be settled. */
size_t evolve_begin(struct evolve *e);
const char *evolve_stopped(const struct evolve *e); /* "limit", "plateau", "budget", "space" */

/* The stream of a slot of the present generation; parts of it are kept for the core. */
struct rng evolve_stream(const struct evolve *e, uint64_t slot);
/* Two different parents for a slot: the elite for slot 0, tournaments for the others. False where
 * nothing was accepted so far: the driver proposes evolve_random then. */
bool evolve_parents(const struct evolve *e, uint64_t slot, struct parent *x, struct parent *y);
void evolve_random(const struct evolve *e, uint64_t slot, struct strategy *out);

/* `attempt` counts the claims of one slot, from 0. False: the space has nothing left. */
bool evolve_claim(struct evolve *e, uint64_t slot, uint64_t attempt,
                  const struct strategy *proposal, size_t *trial);
void evolve_submit(struct evolve *e, size_t trial);
void evolve_align(struct evolve *e, size_t trial, const struct strategy *aligned);
/* time_s: INFINITY when it was not accepted. Returns true for a new best. */
bool evolve_settle(struct evolve *e, size_t trial, double time_s);

/* Which values did better than the rest, on the (geometric) mean: "vector-width=4 1.31x, …". */
void evolve_credit(const struct evolve *e, struct buf *out);

#endif
