/* Strategies: what could be tried, apart from how it is written. A strategy is a set of typed
 * decisions from a catalogue (assets/strategies/, one file a decision); code follows from it
 * through an agent. Strategies are values: small, comparable, hashable, with one canonical text
 * ("block=256 dialect=cuda items=2") that parses back.
 *
 * A task that takes several kernels has several steps. They share the decisions, and any of them
 * may have values of its own: "block=256 items=2 3:items=4" has four items in step 3. */
#ifndef STRATEGY_STRATEGY_H
#define STRATEGY_STRATEGY_H

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/rng.h"
#include "spec/cost.h"

#define STRATEGY_MAX_DECISIONS 64
#define STRATEGY_UNSET         INT64_MIN
#define STRATEGY_MAX_STEPS     64
#define STRATEGY_MAX_OWN       48 /* values of single steps, in all */

enum regime { REGIME_MEMORY, REGIME_COMPUTE, REGIME_LATENCY, REGIME_COUNT };

enum ground_fact {
#define FACT(id, name, what) FACT_##id,
#include "strategy/fact.def"
#undef FACT
    FACT_COUNT
};

/* What a task and a GPU are to the catalogue: which decisions apply, which of their values. */
struct ground {
    bool workload[WORKLOAD_COUNT]; /* of every part of the task */
    int64_t fact[FACT_COUNT];
    enum workload step[STRATEGY_MAX_STEPS]; /* of each step, in the order in which they run */
    size_t nsteps;                          /* 0: not known, and no step has values of its own */
};

/* NAME OP NUMBER, of a fact or of another decision. One that does not apply satisfies nothing. */
enum compare { COMPARE_EQ, COMPARE_NE, COMPARE_LT, COMPARE_LE, COMPARE_GT, COMPARE_GE };
struct condition {
    str name;
    bool is_fact;
    size_t which; /* of the facts or the catalogue's decisions */
    enum compare op;
    int64_t number;
};
#define RULE_MAX_CONDITIONS 8
struct rule {
    bool forbids;    /* holds when the conditions do not */
    int64_t *values; /* that it is about; NULL: the decision as a whole */
    size_t nvalues;
    struct condition all[RULE_MAX_CONDITIONS];
    size_t n;
};

struct decision {
    str name;        /* "vector-width" */
    int64_t *values; /* ascending */
    size_t nvalues;
    str *names; /* of the values, in strategies' texts; NULL: numbers */
    bool asked; /* its value is the fact's, unless a strategy names another: not drawn, not mutated
                 */
    enum ground_fact asked_fact;
    int64_t fallback; /* what the naive kernel has; never forbidden where the decision applies */
    bool workload[WORKLOAD_COUNT];
    bool regime[REGIME_COUNT]; /* where it helps */
    struct rule *rules;
    size_t nrules;
    struct rule *matters; /* one of them holds where it makes a difference; none: wherever it
                             applies */
    size_t nmatters;
    str prose;
};
/* What its prose says of what the code has (the first paragraph): before the texts about single
 * values, and about this one; either may be empty. The rest of the prose is for who chooses. */
void decision_describe(const struct decision *d, int64_t value, str *general, str *chosen);

struct catalogue {
    struct decision *decisions; /* in order of name */
    size_t n;
    size_t order[STRATEGY_MAX_DECISIONS]; /* each after those its rules ask about */
};
bool catalogue_load(const char *assets, struct arena *a, struct catalogue **out, struct err *err);
/* Finds what the rules name, and the order. catalogue_load does it. */
bool catalogue_settle(struct catalogue *c, struct err *err);

struct own_value {
    uint16_t step; /* from 1 on */
    uint16_t decision;
    int32_t value;
};
struct strategy {
    int64_t value[STRATEGY_MAX_DECISIONS];  /* by decision; STRATEGY_UNSET: does not apply */
    struct own_value own[STRATEGY_MAX_OWN]; /* in order of step and decision, none of them what
                                               all steps have */
    size_t nown;
    uint64_t remark; /* a hash of what was said beyond decisions, where that makes it another
                        strategy than the one without; 0: nothing */
};

/* A legal strategy has a value for every decision that applies, one that its rules allow, and none
 * for the others. Everything here that makes a strategy makes a legal one; `strategy_repair` makes
 * one of anything: what is missing or not allowed becomes the default. */
bool strategy_allows(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                     size_t decision, int64_t value);
/* False where the task and the GPU rule the value out, whatever the other decisions are. */
bool strategy_possible(const struct catalogue *c, const struct ground *g, const char *name,
                       int64_t value);
/* Whether the decision makes a difference beside the others, or for the task whatever they are
 * (s NULL). What is legal does not depend on it: it is for who describes decisions. */
bool strategy_matters(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                      size_t decision);
void strategy_repair(const struct catalogue *c, const struct ground *g, struct strategy *s);
/* The decisions that `named` has, on top of s, which stays legal: those of all steps for all of
 * them, whatever values single steps of s had. False where one of them does not apply, or cannot be
 * chosen beside the others; err says why. */
bool strategy_impose(const struct catalogue *c, const struct ground *g,
                     const struct strategy *named, struct strategy *s, struct err *err);
void strategy_fallback(const struct catalogue *c, const struct ground *g, struct strategy *out);
/* What one step goes by: its own values, and those that it shares. `out` has no own ones. */
void strategy_of_step(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                      size_t step, struct strategy *out);
/* Gives a step a value of its own, or takes it back where all steps have the same. False where the
 * decision is none of that step's, cannot be chosen beside its others, or there is no more room. */
bool strategy_put_own(const struct catalogue *c, const struct ground *g, struct strategy *s,
                      size_t step, size_t decision, int64_t value);
/* Lets one step go by the values of `wanted`, as far as they can be chosen and there is room. */
void strategy_impose_on_step(const struct catalogue *c, const struct ground *g,
                             const struct strategy *wanted, size_t step, struct strategy *s);
/* Its own value of a decision, or the one that it shares. */
int64_t strategy_value_in(const struct strategy *s, size_t step, size_t decision);
/* Whether no step has a value of its own of the decision of that name. */
bool strategy_is_shared(const struct catalogue *c, const struct strategy *s, const char *name);
/* Whether a step of that number goes by the decision. */
bool strategy_step_has(const struct catalogue *c, const struct ground *g, size_t step,
                       size_t decision);
void strategy_text(const struct catalogue *c, const struct strategy *s, struct buf *out);
str strategy_as_text(const struct catalogue *c, const struct strategy *s, struct arena *a);
bool strategy_parse(const struct catalogue *c, str text, struct strategy *out, struct err *err);
digest strategy_hash(const struct catalogue *c, const struct strategy *s);
double strategy_distance(const struct catalogue *c, const struct strategy *a,
                         const struct strategy *b); /* 0 same … 1 all decisions at opposite ends */
bool strategy_equal(const struct catalogue *c, const struct strategy *a, const struct strategy *b);
/* Where two strategies differ: in what all steps share (step 0), then in what single steps have. */
struct strategy_change {
    size_t step, decision;
    int64_t from, to;
};
#define STRATEGY_MAX_CHANGES (STRATEGY_MAX_DECISIONS + 2 * STRATEGY_MAX_OWN)
size_t strategy_changes(const struct catalogue *c, const struct strategy *a,
                        const struct strategy *b, struct strategy_change out[STRATEGY_MAX_CHANGES]);
/* The name of what changes: "items", or "3:items". */
str strategy_change_name(const struct catalogue *c, const struct strategy_change *x,
                         struct arena *a);
int strategy_order(const void *x, const void *y); /* some order of struct strategy, for qsort */
int64_t strategy_get(const struct catalogue *c, const struct strategy *s, const char *name);
bool strategy_put(const struct catalogue *c, struct strategy *s, const char *name, int64_t v);

/* Random but repeatable: position p of stream r. */
void strategy_random(const struct catalogue *c, const struct ground *g, struct rng r,
                     struct strategy *out);
/* The same with values of its own for each of several steps, as far as there is room. */
void strategy_random_in_steps(const struct catalogue *c, const struct ground *g, struct rng r,
                              struct strategy *out);
/* One or more decisions moved to a neighbouring or random value; never returns its argument, unless
 * there is no other. */
void strategy_mutate(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                     struct rng r, struct strategy *out);
void strategy_cross(const struct catalogue *c, const struct ground *g, const struct strategy *a,
                    const struct strategy *b, struct rng r, struct strategy *out);
/* How many strategies there are at the most, and a numbering of them (numbers may share one). In
 * these, as in those drawn at random, all steps have the same values. */
uint64_t strategy_space(const struct catalogue *c, const struct ground *g);
void strategy_at(const struct catalogue *c, const struct ground *g, uint64_t index,
                 struct strategy *out);

#endif
