/* What integer expressions can be: interval arithmetic over index variables, with which reads are
 * proved to stay inside their tensors. Private to the room; costs use it to count touched elements.
 *
 * Conditions of `if` narrow the variables on the side they guard, where they compare a variable
 * (plus a constant) with something known: `if(i + 1 < N, x[i+1], 0)`. */
#ifndef SPEC_BOUNDS_H
#define SPEC_BOUNDS_H

#include "spec/task.h"

struct range {
    int64_t lo, hi; /* both ends possible as far as is known; lo > hi: never */
};

struct ranges {
    const struct inst *in;
    struct range index[TASK_MAX_RANK];
};

enum range_result {
    RANGE_OK,
    RANGE_UNKNOWN,  /* depends on data */
    RANGE_OVERFLOW, /* does not fit 64 bits */
    RANGE_ZERO,     /* divides by zero, or may */
};

/* The index variables of a statement, at their full extents. */
struct ranges ranges_of(const struct inst *in, const struct statement *s);
enum range_result range_of(const struct ranges *r, const struct expr *e, struct range *out);
/* Narrows to where the condition is `truth`; what it cannot use it leaves alone. False: nowhere. */
bool ranges_narrow(struct ranges *r, const struct expr *condition, bool truth);
/* The condition depends on elements of tensors. */
bool expr_reads(const struct expr *e);

bool bounds_check(const struct inst *in, const struct statement *s, struct arena *a,
                  struct err *err);

#endif
