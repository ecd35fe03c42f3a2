/* One expression at one point, in plain doubles: numbers over dimensions (bind.c), conditions over
 * indices (domain.h) and inputs that are defined by an expression (data.c). No error estimate, no
 * blocks; the reference comes here for the indices of pads alone. For this room; expr_vars for the
 * oracle as well. */
#ifndef SPEC_SCALAR_H
#define SPEC_SCALAR_H

#include "spec/task.h"

enum { SCALAR_MEMOS = 8 };

/* The value of a reduction at the last point it was asked for: consecutive elements of a row share
 * theirs. */
struct scalar_memo {
    const struct expr *e;
    uint32_t vars; /* that it depends on */
    int64_t at[TASK_MAX_VARS];
    double value;
};

struct scalar {
    const struct inst *in;
    /* The element `linear` of a tensor; never called for an expression without reads. */
    double (*read)(void *ctx, size_t tensor, int64_t linear);
    void *ctx;
    int64_t var[TASK_MAX_VARS];
    struct scalar_memo memo[SCALAR_MEMOS];
    size_t nmemos;
};

double scalar_eval(struct scalar *s, const struct expr *e);

/* The variables an expression depends on, without those bound by reductions inside it. */
uint32_t expr_vars(const struct expr *e);

#endif
