/* Credit: what a decision is worth, learnt from what strategies came to. A Gaussian process over
 * strategies in the logarithm of time. Two strategies are the more alike the fewer decisions
 * differ, each counted by its relevance, which is learnt too (by likelihood); so credit is kept per
 * decision, and for decisions that matter together. A decision that several steps go by differs as
 * far as it does in the mean of these steps. Times of other tasks enter as a prior: their
 * smoothed logarithms, as far as this task's own times agree with them.
 *
 * Numbers only: no input, no output, no chance. Private to the room. */
#ifndef SEARCH_CREDIT_H
#define SEARCH_CREDIT_H

#include "strategy/strategy.h"

#define CREDIT_REJECTED                                                                            \
    0.7 /* logarithm: how much slower than the slowest a rejected one counts                       \
         */

/* What a strategy came to on another task. */
struct precedent {
    struct strategy strategy;
    double log_time; /* relative to that run's mean */
    double weight;   /* how alike the tasks are, 0 to 1 */
};

/* A strategy by where its values stand in the lists of the decisions in use: 0 first … 1 last, -1
 * unset; and those that single steps have for themselves, in order of decision and step. */
struct place {
    float at[STRATEGY_MAX_DECISIONS];
    struct own_place {
        uint16_t decision, step;
        float at;
    } own[STRATEGY_MAX_OWN];
    size_t nown;
};

struct credit {
    const struct catalogue *catalogue;
    const struct precedent *precedents;
    struct place *precedent_at;
    size_t nprecedents;
    double relevance[STRATEGY_MAX_DECISIONS];   /* of those in use */
    size_t steps[STRATEGY_MAX_DECISIONS];       /* … and how many steps go by them, at least 1 */
    size_t used[STRATEGY_MAX_DECISIONS], nused; /* decisions */
    struct place *at;                           /* observed */
    double *y, *prior;                          /* log time; the prior's word on it */
    size_t n, cap, cap_y, cap_prior;
    double mean, rho, scale; /* rho: trust in the prior; scale: variance of the process */
    double *factor;          /* Cholesky, lower triangle by rows: good for the first `factored` */
    double *alpha, *space;   /* weights of predictions; room for one solution */
    size_t factored, cap_factor, cap_alpha, cap_space;
};

/* relevance: where to start from, by decision; 0: it is none of the task's. */
void credit_init(struct credit *c, const struct catalogue *catalogue, const struct ground *g,
                 const double *relevance, const struct precedent *p, size_t n);
void credit_release(struct credit *c);
/* Observations stand in order; those from `keep` on can be dropped again. */
void credit_add(struct credit *c, const struct strategy *s, double log_time);
void credit_drop(struct credit *c, size_t keep);
/* Only the `keep` fastest are left, in their order: what predictions cost grows with the square. */
void credit_forget(struct credit *c, size_t keep);
/* Relevances, by one round over the decisions, then credit_settle. */
void credit_learn(struct credit *c);
/* Makes predictions follow from the observations. */
void credit_settle(struct credit *c);
/* Logarithm of the time to be expected, and how sure that is. */
void credit_predict(const struct credit *c, const struct strategy *s, double *mean, double *sd);
/* How much below `best` (a logarithm) it is to be expected, as an amount: never negative. Exact
 * only where it is over `at_least`; not over it otherwise. */
double credit_improvement(const struct credit *c, const struct strategy *s, double best,
                          double at_least);

#endif
