/* Softmax of scores between two products: what the attention generator matches. Private to its two
 * files.
 *
 *     score[batch, i, j] = sum(d) q[…, i, d] * k[…, j, d]
 *     top[batch, i]      = max(j) F(score)
 *     norm[batch, i]     = sum(j) exp(F(score) - top)
 *     mixed[batch, i, e] = sum(j) exp(F(score) - top) * v[…, j, e]
 *     y                  = a map of mixed and norm
 *
 * F is any expression of one score and its indices; the ranges of j are one and may depend on i.
 * Everything is stated in the variables of `score`: batch, i and j; e is kept apart. */
#ifndef AGENT_EXPERT_ATTENTION_H
#define AGENT_EXPERT_ATTENTION_H

#include "agent/expert/sheet/sheet.h"

struct attention {
    const struct inst *in;
    struct arena *mem;
    const struct statement *score, *top, *norm, *mixed;
    size_t row, key, inner;             /* variables of `score`: i, j and d */
    const struct expr *q, *k, *v;       /* reads; v in variables of `mixed` */
    const struct expr *read;            /* of score, in its own variables */
    struct expr *f;                     /* F(score) */
    const struct expr *lo, *hi, *guard; /* of j; guard NULL: none */
    size_t mixed_var[TASK_MAX_VARS];    /* a variable of `mixed` as one of `score`; SIZE_MAX: e */
    size_t out;                         /* e, a variable of `mixed` */
    size_t key_of_mixed;                /* j there */
};
/* Whether statement `first` is the scores of such a chain; with the maps at its end in `take`. */
bool attention_match(const struct inst *in, size_t first, struct arena *a, struct attention *out,
                     bool *take);

#endif
