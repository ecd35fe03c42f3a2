/* Shapes of expressions that costs and features look for. For this room and the oracle
 * (kernel/oracle_plan.h). */
#ifndef SPEC_PATTERN_H
#define SPEC_PATTERN_H

#include "spec/task.h"

/* The factors of a product, divisors included. */
enum { FACTORS_MOST = 16 };
struct factors {
    const struct expr *e[FACTORS_MOST];
    bool below[FACTORS_MOST]; /* divides */
    size_t n;
};
/* What does not fit is kept whole. */
void pattern_factors(const struct expr *e, struct factors *out);

/* The factors of a product that depend on the variables `over`, and those of them that a kernel of
 * the task's class rounds to its format; added to what is there. */
void pattern_count_rounded(const struct task *t, const struct expr *e, uint32_t over,
                           size_t *factors, size_t *rounded);

/* Sets `factor` in all expressions of the task's statements. */
void pattern_mark_factors(struct task *t);

/* A reduction over a range that grows with an index which its terms do not depend on: the results
 * along that index share their terms, and each takes one operation. */
bool pattern_is_prefix(const struct expr *reduce);

/* A sum whose terms decay on their way to the result,
 *
 *     sum(j <= i) u[j] * prod(j < k <= i) a[k]
 *     sum(j <= i) u[j] * exp(sum(j < k <= i) g[k])     with exp(g) as a
 *     sum(j <= i) u[j] * pow(a, i - j)
 *     sum(j <= i) u[j] * exp(-c*(i - j))               with exp(-c) as a
 *
 * is the recurrence h[i] = a[i]*h[i-1] + u[i]: each result takes one step. `backwards`, over
 * i <= j < N, it is h[i] = a[i]*h[i+1] + u[i]. The weight may be any factor of the term. */
enum { RECURRENCE_FACTORS = 8 };
struct recurrence {
    const struct expr *factor[RECURRENCE_FACTORS]; /* of u, over `var`; none: u is 1 */
    bool below[RECURRENCE_FACTORS];                /* divides */
    size_t nfactors;
    bool negated;            /* u is less the product of the factors */
    const struct expr *gain; /* u has exp(gain) as a factor, too: exp(x[j] - c*(i - j)); or NULL */
    bool loss;               /* … exp(-gain) */
    const struct expr *decay;
    bool exponential; /* a is exp(decay), not decay */
    bool opposite;    /* … exp(-decay) */
    /* The product, or the sum in the exponent: `decay` is over decay_var. NULL: a is the same at
     * every step, and `decay` has its value where `axis` and `var` are these numbers. */
    const struct reduce *over;
    int64_t at_axis, at_var;
    size_t axis, var, decay_var;
    bool backwards;
    bool exclusive; /* j < i and k < i: the result before the step */
    bool with_own;  /* j <= k: a term decays by the factor of its own place, too */
};
bool pattern_is_recurrence(const struct expr *reduce, struct recurrence *out);

/* A sum up to an index (or from it on) of exponentials that the index scales,
 *
 *     sum(k <= j) w[k] * exp(x[k] - m[j]),
 *
 * as in a running log-sum-exp: each result takes one step, which keeps the largest exponent so far
 * and the sum of exponentials less that. */
struct exponentials {
    const struct expr *power; /* the call of exp */
    struct recurrence terms;  /* of it the other factors, and the range */
};
bool pattern_is_exponentials(const struct expr *reduce, struct exponentials *out);

/* A reduction up to an index that starts anew where segments do,
 *
 *     sum(k <= j | k >= start[j]) x[k]     with start[j] = max(k <= j) if(begins[k], k, 0),
 *
 * or from an index to the end of its segment, k <= stop[j] with a running minimum from the end:
 * where start[j] is j a segment begins, and each result takes one step. Of a start that is no such
 * maximum nothing is known. */
struct segments {
    const struct expr *bound; /* start[j] */
    size_t axis, var;
    bool backwards, exclusive;
};
/* t: NULL, where the definition of the start is elsewhere and known to be one. */
bool pattern_is_segments(const struct task *t, const struct expr *reduce, struct segments *out);

/* A sum of products of tensors' elements in which some factor is used again for many results: what
 * tensor cores do. A sum of squares is none. */
bool pattern_is_contraction(const struct expr *reduce);

/* Read at a place computed from data. */
bool pattern_is_gather(const struct expr *read);

/* A condition that some index equals a number from the data. */
bool pattern_pins(const struct expr *condition);

/* Integers over indices and sizes alone, all the way down. */
bool pattern_is_pure(const struct expr *e);

/* Operands of this node that are integers are converted to reals first. */
bool pattern_wants_real(const struct expr *e);

/* SETTLE_… and POLE_… of an operator or a function (value.h), but for SETTLE_ROOT. */
int pattern_settling(const struct task *t, const struct expr *e);

/* Neither index nor element: a compiler folds it. Its value, where it has one. */
bool pattern_is_constant(const struct expr *e);
bool pattern_constant_is(const struct inst *in, const struct expr *e, double value);

/* Some read of it is padded. */
bool pattern_holds_pad(const struct expr *e);
/* Its bounds depend on indices, not on sizes alone. */
bool pattern_bounds_vary(const struct reduce *r);
/* An output that is an argmax or argmin: judged by the terms themselves. */
bool pattern_is_index(const struct task *t, const struct statement *s);

uint32_t reduce_vars(const struct reduce *r);

/* A reduction by index: a condition on its terms equates indices of the result with integers from
 * the data,
 *
 *     sum(t | e[t] == k && f[t] == l) x[t,d]        sum(t) if(e[t] == k, x[t,d], 0)
 *
 * so that each term belongs to one result along those indices: one pass over the terms serves all
 * of them. The numbers depend on what is reduced over and on indices that are not equated. */
enum { BY_INDEX_MOST = 4 };
struct by_index {
    struct {
        size_t var;             /* index of the result */
        const struct expr *key; /* what it equals */
    } pin[BY_INDEX_MOST];
    size_t npins;
    const struct expr *guard;  /* of the reduction, NULL: none */
    const struct expr *chosen; /* the condition of the if, NULL: none */
    const struct expr *term;   /* what is folded where both hold */
    uint32_t pinned;           /* variables */
    uint32_t reduced;          /* variables of the reduction */
    uint32_t shared;           /* other variables that some key depends on */
};
bool pattern_is_by_index(const struct expr *reduce, struct by_index *out);
/* Whether a part of the condition is one of those that equate. */
bool pattern_equates(const struct by_index *by, const struct expr *condition);

#endif
