/* Strategies: what could be tried, apart from how it is written. A strategy is a set of typed
 * decisions from a catalogue (assets/strategies/, one file a decision); code follows from it
 * through an agent. Strategies are values: small, comparable, hashable, with one canonical text
 * ("block=256 dialect=cuda items=2") that parses back. */
#ifndef STRATEGY_STRATEGY_H
#define STRATEGY_STRATEGY_H

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/rng.h"
#include "spec/cost.h"

#define STRATEGY_MAX_DECISIONS 64
#define STRATEGY_UNSET         INT64_MIN

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

struct strategy {
    int64_t value[STRATEGY_MAX_DECISIONS]; /* by decision; STRATEGY_UNSET: does not apply */
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
/* The decisions that `named` has, on top of s, which stays legal. False where one of them does not
 * apply, or cannot be chosen beside the others; err says why. */
bool strategy_impose(const struct catalogue *c, const struct ground *g,
                     const struct strategy *named, struct strategy *s, struct err *err);
void strategy_fallback(const struct catalogue *c, const struct ground *g, struct strategy *out);
void strategy_text(const struct catalogue *c, const struct strategy *s, struct buf *out);
str strategy_as_text(const struct catalogue *c, const struct strategy *s, struct arena *a);
bool strategy_parse(const struct catalogue *c, str text, struct strategy *out, struct err *err);
digest strategy_hash(const struct catalogue *c, const struct strategy *s);
double strategy_distance(const struct catalogue *c, const struct strategy *a,
                         const struct strategy *b); /* 0 same … 1 all decisions at opposite ends */
bool strategy_equal(const struct catalogue *c, const struct strategy *a, const struct strategy *b);
int strategy_order(const void *x, const void *y); /* some order of struct strategy, for qsort */
int64_t strategy_get(const struct catalogue *c, const struct strategy *s, const char *name);
bool strategy_put(const struct catalogue *c, struct strategy *s, const char *name, int64_t v);

/* Random but repeatable: position p of stream r. */
void strategy_random(const struct catalogue *c, const struct ground *g, struct rng r,
                     struct strategy *out);
/* One or more decisions moved to a neighbouring or random value; never returns its argument, unless
 * there is no other. */
void strategy_mutate(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                     struct rng r, struct strategy *out);
void strategy_cross(const struct catalogue *c, const struct ground *g, const struct strategy *a,
                    const struct strategy *b, struct rng r, struct strategy *out);
/* How many strategies there are at the most, and a numbering of them (numbers may share one). */
uint64_t strategy_space(const struct catalogue *c, const struct ground *g);
void strategy_at(const struct catalogue *c, const struct ground *g, uint64_t index,
                 struct strategy *out);

#endif
