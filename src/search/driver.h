/* The driver of every search. It takes candidates through their life and asks a policy what to do
 * next. Private to the room.
 *
 *     being proposed ─▶ proposed ─▶ being written ─▶ evaluating ─▶ done ─▶ being aligned ─▶ done
 *                           │             │              ▲           │
 *                           └▶ set aside ◀┘              └ being repaired
 *
 * A candidate is one proposal and what becomes of it. Each source that is written for it, the first
 * one and its repairs, is a version: it has an ordinal of its own, counts against the budget and
 * becomes a row of the archive. A candidate that never had a source that could be tried is set
 * aside.
 *
 * The driver alone asks the agent, submits, completes, archives, replays, counts budgets, heeds the
 * clock and stop requests, and reports events. In its loop it lets the policy begin something
 * (`next`), and gives it the versions whose outcomes are known (`take`) in an order that does not
 * depend on which outcome arrived first. There are two such orders:
 *
 *   window   (window.c) for an agent that answers at once: `next` is called until the policy has
 *            enough candidates under way; then the oldest one is waited for and taken. What is
 *            accepted is aligned before it is archived.
 *   barrier  (generations.c, refine.c) for models: what one `next` began comes to its end, all of
 *            it together; then all of it is taken, in order of candidates.
 *
 * A policy decides what to propose next, from what it was given by `take`, and when the run is
 * over. It must not look at an outcome that it was not given, nor at the clock: then it is a
 * function of the seed, the history, the agent's answers and the outcomes in that order, and a run
 * resumes by running again. Answers and outcomes that the archive has are used first. Time that is
 * up stops a run only in front of something that would have to be waited for, and the archive has a
 * note of that, so that the same command comes to the same end.
 *
 * Whatever ends a run, it hands over the best accepted candidate whose outcome is known, taken by
 * the policy or not. A run that ends before it has come to everything that the archive has (it was
 * gone on with, and a signal came) takes what it did not come to from there. Where no outcome is
 * known when the time is up, the first one is waited for a while longer. A candidate that could not
 * be judged is set aside; many of them in a row are a failure.
 */
#ifndef SEARCH_DRIVER_H
#define SEARCH_DRIVER_H

#include "search/recall.h"
#include "search/search.h"

enum candidate_state {
    /* A question about it is open: */
    CANDIDATE_BEING_PROPOSED,
    CANDIDATE_BEING_WRITTEN,
    CANDIDATE_BEING_REPAIRED,
    CANDIDATE_BEING_ALIGNED,
    /* … or its present version is with the evaluator: */
    CANDIDATE_EVALUATING,
    /* It rests until the policy goes on with it: */
    CANDIDATE_PROPOSED,
    CANDIDATE_DONE, /* the present version has its outcome */
    CANDIDATE_SET_ASIDE,
};

struct search_candidate {
    struct driver *driver;
    enum candidate_state state;
    bool unanswered; /* the last question had no answer that could be used */
    bool declined;   /* the optimizer has nothing that should gain: no source */
    bool unjudged;   /* its evaluation failed, so that nothing is known of it */
    bool taken;      /* the policy was given the present version */
    bool replayed;   /* its outcome is from the archive */
    bool is_aligned;
    bool refused;   /* as a winner: it did not hold a second time */
    bool passed_by; /* as a winner: it could not be verified a second time */
    str passed_why; /* … and why */
    bool unwatched; /* right on the GPU, and the simulator cannot run it */
    bool uncovered; /* something that it does at the task's own shape was not judged */
    const struct search_candidate
        *repeats;                   /* whose source the last answer was; NULL: it was a new one */
    uint64_t generation, slot;      /* slot: of the next version */
    uint64_t ordinal, next_ordinal; /* of the present version, and of the next */
    size_t trial;                   /* of the core (evolve.h) */
    size_t rejected;                /* versions before the present one */
    struct strategy strategy;
    struct strategy written; /* with what its decisions became when it was written */
    struct strategy aligned; /* as its code has it */
    uint64_t submitted_ms;   /* to the evaluator, by the clock; 0: it was not */
    struct origin origin;    /* of the present version, for its record; policies set the step */
    double asked_at;         /* the last question, as phase_now */
    str reason, source;
    char hash[65];           /* of the source */
    double time_s;           /* INFINITY: not accepted, or not known */
    struct outcome *outcome; /* NULL: not known, or forgotten */
    struct arena *mem;       /* of its texts */
};

struct policy {
    void *self;
    bool window; /* the order of the candidates is the window's, not the barrier's */
    bool chain;  /* refine's: a candidate changes the code of the one before, not its strategy */
    /* Says what begins (driver_say). False: failed. */
    bool (*begin)(void *self);
    /* Begins something, or stops the run. False: there is nothing to do before what is under way
     * was taken; the run is over where nothing is. */
    bool (*next)(void *self);
    /* A version whose outcome is known. True: it is the best so far. */
    bool (*take)(void *self, struct search_candidate *c);
    void (*end)(void *self); /* may be NULL */
    size_t (*worth)(void *self, const struct search_candidate *winner,
                    struct search_worth list[STRATEGY_MAX_DECISIONS]); /* may be NULL */
};

struct known_source {
    char hash[65];
    uint64_t round;
    const struct search_candidate *candidate;
};

struct driver {
    const struct policy *policy;
    struct loop *loop;
    struct search_options o; /* the caller's, with defaults in the place of 0 */
    struct evaluator_options eo;
    struct evaluator *evaluator; /* NULL: not needed so far */
    struct arena *mem;           /* of the run */
    struct briefing briefing;    /* the caller's, with history */
    struct history history;      /* retrieved */
    struct recalled recalled;
    struct search_candidate **candidates;
    size_t n, cap;
    size_t first;               /* those before it were taken, and will not change again */
    struct known_source *known; /* of all versions, by submission */
    size_t nknown, cap_known;   /* nknown: evaluations that the budget has paid for */
    uint64_t round;             /* calls of `next` */
    struct strategy *plan;
    size_t nplan;
    str plan_reason;
    bool plan_asked;
    bool gone; /* the agent cannot answer any more */
    struct err unwritten;
    uint64_t generation; /* of events */
    double best_s;
    double best_low_s, best_high_s; /* its interval; 0: not measured */
    uint64_t ticked_ms;             /* by the clock: when the last TICK was */
    double kept_s;                  /* of the best that the caller was given; INFINITY: none */
    size_t unjudged;                /* candidates in a row, as taken */
    bool overtime;                  /* it was said that the first outcome is waited for */
    uint64_t hand_over_by; /* by the clock: then the winner is not verified any more; 0: never */
    struct search_best *best;
    struct arena *best_mem;       /* of its texts: the caller's */
    uint64_t start_ms, before_ms; /* before: spent by earlier commands on this run */
    uint64_t time_ends; /* window: taken candidates after which an earlier command was out of the
                           time that this one has too */
    str budgets;        /* barrier: of candidates, of every command that has gone on with the run */
    const char *stopped; /* NULL: goes on */
    bool failed;
    struct err err;
};

/* A whole run, from the archive's notes to the winner; out as in search.h. Nothing of the driver is
 * left after it. */
bool driver_run(struct driver *d, const struct policy *p, struct loop *l,
                const struct search_options *o, const struct evaluator_options *eo, struct arena *a,
                struct search_best *out, struct err *err);

/* ---- for policies ---- */

/* Both return false. The first reason stays. */
bool driver_fail(struct driver *d, const struct err *why);
bool driver_stop(struct driver *d, const char *why);
bool driver_goes_on(const struct driver *d);
/* d->err is what the run's result has for its failure, unless there is an earlier one. */
void driver_note_failure(struct driver *d);

/* Candidates that the budget has left; UINT64_MAX: no such end. */
uint64_t driver_left(const struct driver *d);
/* … as roles are told: of the first budget that is not used up. A run that is gone on with under
 * another one asks what it asked before in the same words, or its recorded answers would not be
 * found. */
uint64_t driver_left_told(const struct driver *d);
/* What a question is about (NO_CANDIDATE: no single one), and how far the run may still go. */
struct briefing driver_brief(const struct driver *d, uint64_t candidate, size_t stale);

struct search_candidate *driver_add(struct driver *d);
void driver_drop_last(struct driver *d); /* it was set aside, and is forgotten */

/* Questions. An answer moves the candidate on: a source that is new is submitted at once, one that
 * an earlier round has submitted sets `repeats`. An error is said, and sets `unanswered`. Before a
 * source is asked for, slot and next_ordinal are set. */
void driver_ask_plan(struct driver *d, const struct briefing *b, size_t n);
void driver_ask_child(struct search_candidate *c, const struct briefing *b, const struct parent *x,
                      const struct parent *y, struct rng r);
void driver_ask_source(struct search_candidate *c, const struct briefing *b);
void driver_ask_repair(struct search_candidate *c, const struct briefing *b, size_t more,
                       str earlier);
void driver_ask_change(struct search_candidate *c, const struct briefing *b,
                       const struct search_candidate *of, const struct guidance *g);
void driver_ask_alignment(struct search_candidate *c, const struct briefing *b);
/* Until no question is open. False: stopped or failed. */
bool driver_await_answers(struct driver *d);
/* An accepted candidate as the compiled code shows it, without asking anybody. */
void driver_align_by_rule(struct search_candidate *c);

/* The run's evaluator, made on its first use; NULL: d->err says why there is none. */
struct evaluator *driver_evaluator(struct driver *d);

bool candidate_accepted(const struct search_candidate *c);
/* It is a child of these. */
void candidate_set_parents(struct search_candidate *c, const struct parent *x,
                           const struct parent *y);
/* Where the time of an accepted one goes, on one line. */
str candidate_where(const struct search_candidate *c);

void driver_say(const struct driver *d, enum event_kind kind, str text);
void driver_tick(void *driver); /* while something is waited for: a TICK now and then */
/* Notes in the archive; a number that is damaged is said, and counts as absent. */
bool driver_read_note(struct driver *d, const char *key, str *out);
bool driver_write_note(struct driver *d, const char *key, str value);
bool driver_read_number(struct driver *d, const char *key, uint64_t absent, uint64_t *out);
bool driver_write_number(struct driver *d, const char *key, uint64_t value);

/* The winner (winner.c): the fastest accepted candidate that holds a second time, on a seed it has
 * not met, and (measured on a GPU) under the simulator's checkers. One that the simulator cannot
 * run ranks below those that it watched, and is labelled. One on which the evaluation itself fails
 * (a worker that dies, memory that is short) is passed by for the next fastest. Where that cannot
 * be found out of any, because the time is over or the environment fails, the fastest is the
 * winner, labelled with the reason. NULL: there is none. */
struct search_candidate *winner_choose(struct driver *d, struct arena *a);
bool winner_exists(const struct driver *d); /* there is an accepted candidate */

#endif
