/* The core of the search, without input and output: which strategy comes next, given the seed and
 * what the earlier ones came to. Private to the room; window.c drives it with an
 * evaluator, ablate.c with a table.
 *
 * The driver's cycle:
 *     while evolve_open(e):                     a further candidate may be submitted now
 *         evolve_propose                        from the plan, of two parents, by credit, by chance
 *         evolve_claim                          an untried strategy, at or near the proposal
 *         write its source; when it cannot be written, or is that of an earlier trial
 *         (evolve_same_source), claim again
 *         evolve_submit                         it is a candidate now, with the next ordinal
 *         … or evolve_pass                      nothing near the proposal could be written
 *     evolve_settle the oldest candidate that is not settled; go on until there is none
 *
 * A candidate is proposed when exactly so many of the earlier ones are settled that `window` are
 * under way, so what it is made from does not depend on which outcome arrives first, and devices do
 * not wait for the end of a generation: a generation is `population` candidates in a row.
 *
 * No strategy is claimed twice in a run, no source is submitted twice. Ties in time go to the lower
 * ordinal. */
#ifndef SEARCH_EVOLVE_H
#define SEARCH_EVOLVE_H

#include "search/credit.h"
#include "search/search.h"

#define SEARCH_POPULATION 12

/* Strategies that the planner is asked for: what follows is made from what they came to, and two
 * thirds of a generation are enough to begin with. */
static inline size_t search_plan(size_t population) {
    return population - population / 3;
}

struct evolve_options {
    const struct catalogue *catalogue;
    struct ground ground;
    uint64_t seed;
    enum search_method method;
    bool uncredited;            /* every child is the crossover role's: to measure credit by */
    enum regime regime;         /* REGIME_COUNT: not told */
    size_t population, plateau; /* not 0 */
    size_t window;              /* not 0 */
    uint64_t candidates;        /* budget; 0: none */
    double limit_s, stop_share; /* ends at limit_s / best >= stop_share; limit_s INFINITY: never */
    const struct precedent *precedents; /* of other tasks */
    size_t nprecedents;
    /* The only strategies there are, sorted by strategy_order; NULL: all. A proposal that is not
     * one of them becomes the nearest that is. */
    const struct strategy *only;
    size_t nonly;
};

struct evolve_trial {
    struct strategy strategy;
    struct strategy aligned; /* as its code has it: what parents and credit go by */
    uint64_t ordinal, turn;  /* ordinal: of what was submitted */
    uint64_t candidate;      /* its number in the run, for records: the ordinal, or as the driver
                                has it */
    size_t same_as;          /* an earlier trial with the same source; itself: none */
    bool submitted, settled;
    double time_s; /* INFINITY: not accepted, or not known */
};

struct evolve {
    struct evolve_options o;
    struct evolve_trial *trials; /* in order of claims; what could not be written stays too */
    size_t n, cap;
    uint64_t turn; /* proposals asked for */
    size_t passed; /* in a row */
    uint64_t submitted, settled;
    size_t stale;        /* generations without gain */
    double best_s;       /* INFINITY: none */
    size_t best;         /* its trial */
    double gain_from_s;  /* best at the last generation that counted as a gain */
    const char *stopped; /* "limit", "plateau", "budget", "space", "plan"; NULL: goes on */
    struct credit credit;
    size_t seen, cap_order; /* trials that credit knows */
    size_t *order;          /* settled trials, in the order in which they were */
    size_t nordered;
    size_t learnt; /* observations when relevances were learnt last */
};

void evolve_init(struct evolve *e, const struct evolve_options *o);
void evolve_release(struct evolve *e);

bool evolve_open(const struct evolve *e);
uint64_t evolve_generation(const struct evolve *e); /* of the next candidate, from 0 */

enum proposal_from { FROM_PLAN, FROM_PARENTS, FROM_CREDIT, FROM_CHANCE };
struct proposal {
    enum proposal_from from;
    size_t plan;              /* PLAN: which of it */
    struct parent x, y;       /* PARENTS: a child of these, by whoever does crossover */
    struct strategy strategy; /* CREDIT, CHANCE */
    double expected_s;        /* CREDIT; INFINITY: of this task nothing is known */
};
/* nplan: strategies the planner made. False: they were all there was to try. */
bool evolve_propose(struct evolve *e, size_t nplan, struct proposal *out);
/* The stream of the present turn, for whoever does crossover. */
struct rng evolve_stream(const struct evolve *e);

/* `attempt` counts the claims of one turn, from 0. False: the space has nothing left. */
bool evolve_claim(struct evolve *e, uint64_t attempt, const struct strategy *proposal,
                  size_t *trial);
void evolve_same_source(struct evolve *e, size_t trial, size_t of);
void evolve_submit(struct evolve *e, size_t trial);
void evolve_pass(struct evolve *e);
void evolve_align(struct evolve *e, size_t trial, const struct strategy *aligned);
/* time_s: INFINITY when it was not accepted. Returns true for a new best. */
bool evolve_settle(struct evolve *e, size_t trial, double time_s);

/* The time of the strategy with every decision at its default; INFINITY where it is not known. */
double evolve_naive_s(const struct evolve *e);
/* What the decisions of a trial were worth against their defaults, the greatest first; returns how
 * many of them something can be said of. */
size_t evolve_worth(const struct evolve *e, size_t trial,
                    struct search_worth list[STRATEGY_MAX_DECISIONS]);
/* "vector-width=4 1.31x (1.12x to 1.40x in 3 pairs), …" */
void evolve_put_worth(const struct catalogue *c, const struct strategy *s,
                      const struct search_worth *list, size_t n, struct buf *out);

/* ---- selection ---- */

/* The best accepted trials, at most a population of them, best first. */
size_t evolve_survivors(const struct evolve *e, size_t *out);
/* Two different ones by tournament; one that is alone gets a stranger. The second comes to another
 * strategy than the first by what their code has, where there is such a one: of two that are the
 * same there would be nothing to combine. */
bool evolve_unlike_parents(const struct evolve *e, struct rng r, struct parent *x,
                           struct parent *y);
void evolve_random(const struct evolve *e, struct rng r, struct strategy *out);

#endif
