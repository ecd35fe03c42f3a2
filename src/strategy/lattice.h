/* A part of the space small enough to measure whole, and closed: values are taken from decisions
 * until few enough strategies are left, and all of those are listed. Every operation on strategies
 * works on the smaller catalogue as on the whole one, so a search over it is a search.
 *
 * What is taken, in this order and no more than necessary: no decision has more than four values,
 * then three; decisions that do not help in the regime are fixed at what `first` has; further
 * decisions are fixed, in an order drawn from the seed. Then values come back while there is room.
 * Defaults and what `first` has always stay. A fixed decision still falls back to its default where
 * a rule forbids its value. */
#ifndef STRATEGY_LATTICE_H
#define STRATEGY_LATTICE_H

#include "strategy/strategy.h"

struct lattice_options {
    const struct catalogue *catalogue;
    struct ground ground;
    struct strategy first; /* the best guess there is */
    enum regime regime;
    size_t limit; /* strategies; not 0 */
    uint64_t seed;
};

struct lattice {
    struct catalogue catalogue; /* with the values that are left */
    struct strategy *at;        /* all of them, once each, in an order drawn from the seed */
    size_t n;
    uint64_t fixed; /* bits: decisions */
};
/* In the arena. */
void lattice_make(const struct lattice_options *o, struct arena *a, struct lattice *out);

/* The catalogue with only some of a decision's values; the default must be among them. */
void catalogue_keep(struct catalogue *c, size_t decision, const int64_t *values, size_t n,
                    struct arena *a);
/* A copy whose value lists can be replaced. */
void catalogue_copy(const struct catalogue *c, struct arena *a, struct catalogue *out);

#endif
