/* What integer expressions can be: interval arithmetic over the variables of a statement, with
 * which reads are proved to stay inside their tensors. For this room, where costs use it to count
 * touched elements, and the oracle, for the ranges of what it keeps.
 *
 * Conditions of `if`, guards and ranges of reductions count where they hold. They narrow variables
 * they compare with something known, `if(i + 1 < N, x[i+1], 0)`, and are kept as facts, so that
 * `k <= j` bounds `j - k` and a condition on `(p + 1 - r)//2` bounds that very expression. */
#ifndef SPEC_BOUNDS_H
#define SPEC_BOUNDS_H

#include "spec/expr.h"

struct range {
    int64_t lo, hi; /* both ends possible as far as is known; lo > hi: never */
};

/* a KIND b holds. `a` NULL: the variable `var`. */
struct fact {
    const struct expr *a, *b;
    size_t var;
    enum expr_kind kind;
};

enum { RANGES_FACTS = 12 };

struct ranges {
    const struct inst *in;
    struct range index[TASK_MAX_VARS];
    struct fact facts[RANGES_FACTS];
    size_t nfacts;
};

enum range_result {
    RANGE_OK,
    RANGE_UNKNOWN,  /* depends on data */
    RANGE_OVERFLOW, /* does not fit 64 bits */
    RANGE_ZERO,     /* divides by zero, or may */
};

/* The variables of the left side of a statement, at their full extents. */
struct ranges ranges_of(const struct inst *in, const struct statement *s);
enum range_result range_of(const struct ranges *r, const struct expr *e, struct range *out);
/* Narrows to where the condition is `truth`; what it cannot use it leaves alone. False: nowhere. */
bool ranges_narrow(struct ranges *r, const struct expr *condition, bool truth);
/* Inside a reduction: its variables at their ranges, its guard true. False: there is no term. */
bool ranges_enter(struct ranges *r, const struct reduce *over);

bool bounds_check(const struct inst *in, const struct statement *s, struct arena *a,
                  struct err *err);

/* Every element of an output is defined by exactly one statement. */
bool coverage_check(const struct inst *in, struct arena *a, struct err *err);

/* The parts of the proof. ranges_enter goes through them one after the other. */
enum range_result ranges_enter_var(struct ranges *r, const struct reduce_var *v, bool *some);
/* Without facts. */
enum range_result range_plain(const struct ranges *r, const struct expr *e, struct range *out);

#endif
