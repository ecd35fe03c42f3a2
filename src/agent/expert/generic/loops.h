/* Loops for the reductions of an expression: they stand before it, and it uses their values. Those
 * on one side of an `if` run only where the condition says so, because only there their reads are
 * known to stay inside. Long sums are kept in parts, so that fp32 stays fp32. */
#ifndef AGENT_EXPERT_GENERIC_LOOPS_H
#define AGENT_EXPERT_GENERIC_LOOPS_H

#include "agent/expert/sheet/sheet.h"
#include "spec/bounds.h"

struct loops {
    struct scope *k;
    struct buf *out; /* lines go there */
    int indent;
    bool warp;    /* lanes share an element: an integer `lane` is in sight */
    bool divided; /* inside a loop that they share: the loops inside are each lane's own */
};

/* Loops for all reductions of the expression, whose values its text then has (scope_hold). */
void loops_hoist(struct loops *g, const struct expr *e);
/* How many values the variable takes; the ranges are narrowed to where it stands. */
int64_t loops_terms(struct ranges *r, const struct reduce_var *v);
/* Terms of the longest reduction in the expression, with all that it stands in. */
double loops_longest(const struct step *st, const struct statement *s, const struct expr *e);

#endif
