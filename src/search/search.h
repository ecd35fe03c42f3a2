/* The search: what to try next. `evolve` keeps a population of strategies: planned first, coded by
 * the agent, evaluated, aligned to their code; the better ones have children, by the crossover role
 * and by credit per decision (docs/SEARCH.md).
 *
 * It is a deterministic function of its seed, of the history it was given (archived with the run)
 * and of the outcomes it has consumed, in submission order: random streams are keyed by seed and
 * turn, and a candidate is made when exactly so many earlier ones are known. Running it again with
 * archived outcomes as answers is therefore how a run resumes. */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include "agent/agent.h"
#include "archive/archive.h"
#include "base/option.h"
#include "eval/eval.h"
#include "search/event.h"
#include <signal.h>

/* The ways to search. */
enum search_method {
    SEARCH_EVOLVE,
    SEARCH_RANDOM, /* any strategy, nothing is learnt: what the others are held against */
    SEARCH_ONCE,   /* the planner's proposals alone */
};

/* Candidates under way at a time: fewer would let compilers or devices wait, more would be made
 * from what is known too early. Many workers get a whole population at the most. */
static inline size_t search_window(size_t population, size_t workers) {
    size_t n = population / 2, busy = 2 * workers < population ? 2 * workers : population;
    n = n < busy ? busy : n;
    return n < 4 ? 4 : n;
}

/* Nothing is left to gain. A time well below the limit says that the limit is none, for the data or
 * for the task: that is no reason to stop. */
static inline bool search_is_at_limit(double limit_s, double best_s, double stop_share) {
    const double noise =
        0.02; /* of a measured time and of the ceilings that the limit is made of */
    double share = limit_s / best_s;
    return share >= stop_share && share <= 1 + noise;
}

struct search_options {
    const struct briefing *briefing;
    struct agent *agent;
    struct archive *archive; /* NULL: nothing is kept */
    struct budget budget;    /* time ends between generations as well as inside one */
    uint64_t seed;
    enum search_method method;
    bool blind;         /* planner and credit do not go by the roofline */
    bool facts;         /* models' crossover is told where the time of parents goes */
    const char *pool;   /* the user's history pool, read and added to; NULL: no history */
    const char *assets; /* where the shipped pool may be overridden; NULL: nowhere */
    size_t population;  /* of a generation; 0: 12 */
    size_t window;      /* candidates under way; 0: search_window */
    size_t plateau;     /* generations without gain before it stops; 0: 3 */
    double stop_share;  /* stops from this fraction of the limit on; 0: 0.98 */
    const volatile sig_atomic_t *interrupted; /* set by a signal handler; may be NULL */
    const volatile sig_atomic_t *hurry; /* … a second time: what is left to do is left out */
    /* Called with every accepted candidate that is faster than those before it, as soon as its
     * outcome is known: whatever happens next, the caller has it. May be NULL. */
    void (*keep_best)(void *ctx, str source, const struct record *record);
    void *keep_ctx;
    event_fn *emit;
    void *emit_ctx;
};

/* What a decision of the winner is worth: over pairs of accepted candidates that differ in it
 * alone, one with it as the winner has it and one at its default, the median of how many times as
 * fast the former is, and the range. */
struct search_worth {
    size_t decision; /* of the catalogue */
    double times, least, most;
    size_t pairs;
};

/* What a run comes to. Whatever ended it, the best accepted kernel is in it. */
struct search_best {
    bool found;
    uint64_t ordinal;
    struct strategy strategy; /* as its code has it */
    str source;               /* in the arena given to search_evolve */
    struct record *record;    /* owned by the caller; "confirmed" in it is the second verification,
                                 "unconfirmed_why" says why there is none */
    double time_s;
    double naive_s; /* of the fallback strategy; INFINITY when it was not accepted */
    size_t evaluated, replayed;
    size_t precedents; /* runs of other tasks that it began with */
    /* The decisions of the winner that a pair tells of, the most worth first; and as text, in the
     * arena given to search_evolve. */
    struct search_worth worths[STRATEGY_MAX_DECISIONS];
    size_t nworths;
    str worth;
    const char
        *stopped;     /* "limit", "plateau", "budget", "interrupted", "space", "plan", "failed" */
    str failure;      /* of the environment, which ended the run; empty: none. In the arena */
    str unremembered; /* why the history has nothing of it, where that was to be added */
    double first_s;   /* how long the first evaluation took; 0: none came to its end */
    double waited_s;  /* … and how long it had been waited for by then */
    double had_s;     /* what the run has taken of a budget of time, over all commands */
};

/* Of a source without the lines that are comments alone (`//`, but not the plan's `//!`): sources
 * for which it is the same are one candidate. The expert says above a kernel which strategy it was
 * asked for, and several of them often come to the same code, which is evaluated once. */
void search_code_hash(str source, char hex[65]);

/* A verification after the end of a run rejected its winner, as `why` says: the same run, gone on
 * with, takes another one. */
bool search_refuse(struct archive *a, uint64_t ordinal, const struct record *why, struct err *err);

/* The evaluator options are completed (callbacks) by the search. */
bool search_evolve(struct loop *l, const struct search_options *o,
                   const struct evaluator_options *eo, struct arena *a, struct search_best *out,
                   struct err *err);
/* `evolve` with agents that take their time, generation by generation (generations.c). The agent
 * has the role debugger. */
bool search_generations(struct loop *l, const struct search_options *o,
                        const struct evaluator_options *eo, struct arena *a,
                        struct search_best *out, struct err *err);

/* `refine`: one kernel that gets better (refine.c). The agent has the roles debugger and optimizer.
 * Of the options, population and plateau are not used: a round is one candidate and its repairs,
 * and stages end by themselves. */
enum profiling { PROFILING_DELAYED, PROFILING_NOW, PROFILING_NEVER };
struct refine_options {
    enum profiling profiling;
    size_t repairs; /* of one candidate at most; 0: 4 */
};
bool search_refine(struct loop *l, const struct search_options *o, const struct refine_options *ro,
                   const struct evaluator_options *eo, struct arena *a, struct search_best *out,
                   struct err *err);

/* Why a run ended, as a clause for people: of what search_best.stopped and the archive say. */
const char *search_why_ended(str stopped);

#endif
