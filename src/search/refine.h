/* `refine`: one candidate that gets better (CuTeGen's way). It is generated, tested, repaired until
 * it is right, and then improved in stages, structure before details before parameters. Every round
 * starts from the best one; what is slower or cannot be repaired is dropped and remembered.
 *
 * It is a deterministic function of the agent's answers and of the outcomes, one after the other.
 * With both in the archive (archived.h keeps a model's answers) running it again is how a run
 * resumes, and costs neither a call nor an evaluation. */
#ifndef SEARCH_REFINE_H
#define SEARCH_REFINE_H

#include "search/course.h"
#include "search/search.h"

struct refine_options {
    enum profiling profiling;
    size_t repairs; /* of one candidate at most; 0: 4 */
};

/* The agent has the roles debugger and optimizer. Of the options, population and plateau are not
 * used: a round is one candidate and its repairs, and stages end by themselves. */
bool search_refine(struct loop *l, const struct search_options *o, const struct refine_options *ro,
                   const struct evaluator_options *eo, struct arena *a, struct search_best *out,
                   struct err *err);

#endif
