/* Strategies: what could be tried, apart from how it is written. A strategy is a set of typed
 * decisions from a catalogue (assets/strategies/, one file a decision); code follows from it
 * through an agent. Strategies are values: small, comparable, hashable, with one canonical text
 * ("vector-width=4 items=2 block=256") that parses back. */
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

struct decision {
    str name;        /* "vector-width" */
    int64_t *values; /* ascending */
    size_t nvalues;
    int64_t fallback; /* what the naive kernel has */
    bool workload[WORKLOAD_COUNT];
    bool regime[REGIME_COUNT]; /* where it helps */
    str prose;
};
struct catalogue {
    struct decision *decisions; /* in order of name */
    size_t n;
};
bool catalogue_load(const char *assets, struct arena *a, struct catalogue **out, struct err *err);

struct strategy {
    int64_t value[STRATEGY_MAX_DECISIONS]; /* by decision; STRATEGY_UNSET: does not apply */
};

void strategy_fallback(const struct catalogue *c, enum workload w, struct strategy *out);
void strategy_text(const struct catalogue *c, const struct strategy *s, struct buf *out);
bool strategy_parse(const struct catalogue *c, str text, struct strategy *out, struct err *err);
digest strategy_hash(const struct catalogue *c, const struct strategy *s);
double strategy_distance(const struct catalogue *c, const struct strategy *a,
                         const struct strategy *b); /* 0 same … 1 all decisions at opposite ends */
bool strategy_equal(const struct catalogue *c, const struct strategy *a, const struct strategy *b);
int64_t strategy_get(const struct catalogue *c, const struct strategy *s, const char *name);
bool strategy_put(const struct catalogue *c, struct strategy *s, const char *name, int64_t v);

/* Random but repeatable: position p of stream r. */
void strategy_random(const struct catalogue *c, enum workload w, struct rng r,
                     struct strategy *out);
/* One or more decisions moved to a neighbouring or random value; never returns its argument. */
void strategy_mutate(const struct catalogue *c, const struct strategy *s, struct rng r,
                     struct strategy *out);
void strategy_cross(const struct catalogue *c, const struct strategy *a, const struct strategy *b,
                    struct rng r, struct strategy *out);
/* How many strategies there are for a workload. */
uint64_t strategy_space(const struct catalogue *c, enum workload w);

#endif
