/* Guards of reductions as ranges: one meaning, one form.
 *
 *     sum(k | k <= i && !(k <= i - W)) x[k]     becomes     sum(maximum(0, i - W + 1) <= k <= i)
 * x[k]
 *
 * A part of a guard that bounds the reduction's only variable by indices and sizes becomes a bound
 * of its range, whatever side each term stands on. So a loop does not visit terms that cannot
 * count. What bounds it by data stays in the guard, as k < n[b] or k >= n[b]: ranges know no data.
 * Bounds are written in one order of their terms, and one that another implies at every size is
 * dropped.
 *
 * A place in a window, x[p + r], is counted from 0 on: -3 <= r <= 3 becomes r < 7 and x[p + r - 3].
 * One that runs backward, x[t - k], is turned round.
 *
 * Three forms are kept apart, because families go by them:
 *   - A variable that only ever stands beside others in indices, x[i + r], is a place in a window.
 *     Its range stays a size and what cuts it is a guard.
 *   - A range of at most WINDOW_MOST places that moves along with an index, i - 3 <= k <= i, is
 *     such a window: k is replaced by i - 3 + r. Not where a product's results are reduced: those
 *     are scores of attention; nor in a band of a matrix, x[i,k].
 *   - Of several variables none has a range that depends on an index: the bound is a guard. */
#ifndef AGENT_EXPERT_FORM_GUARDS_H
#define AGENT_EXPERT_FORM_GUARDS_H

#include "spec/expr.h"

/* The body of a statement with all its reductions in that form. `t` has the statements before. */
struct expr *form_ranged(const struct inst *in, const struct statement *s, struct arena *a);

/* A sum of products with its terms left out in one way: `if(c, x, 0)*w` and `if(c, x*w, 0)` are
 * terms with a guard, and guards that only keep an index inside its tensor are a pad. */
struct expr *form_padded(const struct inst *in, const struct expr *e, struct arena *a);

/* A transposed convolution that is written phase by phase, sum(j < J) x[e//S - j]*w[e%S + S*j],
 * over its taps: sum(r < S*J | (e - r) % S == 0) x[(e-r)//S]*w[r]. */
struct expr *form_tapped(const struct expr *e, struct arena *a);

/* Of a guard the parts that are `var` < e (`upper`), or `var` >= e: their number, at most `most`.
 */
size_t form_ends(const struct expr *guard, size_t var, bool upper, const struct expr **out,
                 size_t most);

/* The extent of a tensor that the variable indexes by itself wherever the expression is evaluated,
 * so that no value of it lies beyond; NULL: there is none. */
const struct expr *form_own_extent(const struct task *t, const struct expr *e, size_t var);

#endif
