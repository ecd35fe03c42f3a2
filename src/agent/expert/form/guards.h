/* Guards of reductions as ranges: one meaning, one form.
 *
 *     sum(k | k <= i && !(k <= i - W)) x[k]     becomes     sum(maximum(0, i - W + 1) <= k <= i) x[k]
 *
 * A part of a guard that bounds the reduction's only variable by something that the variable does
 * not change, an index, a size or an element such as n[b], becomes a bound of its range, whatever
 * side each term stands on. So a loop does not visit terms that cannot count. What is no such
 * bound stays in the guard. Bounds over indices are written in one order of their terms, and a
 * bound that another one implies at every size is dropped.
 *
 * Three forms are kept apart, because families go by them:
 *   - A variable that only ever stands beside others in indices, x[i + r], is a place in a window.
 *     Its range stays a size and what cuts it is a guard.
 *   - A range of at most WINDOW_MOST places that moves along with an index, i - 3 <= k <= i, is
 *     such a window: k is replaced by i - 3 + r. Not where a product's results are reduced: those
 *     are scores of attention.
 *   - Of several variables none has a range that depends on an index: the bound is a guard. */
#ifndef AGENT_EXPERT_FORM_GUARDS_H
#define AGENT_EXPERT_FORM_GUARDS_H

#include "spec/expr.h"

/* The body of a statement with all its reductions in that form. `t` has the statements before. */
struct expr *form_ranged(const struct inst *in, const struct statement *s, struct arena *a);

#endif
