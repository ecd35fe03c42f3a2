/* What a candidate is tried on: shapes, and the data for each.
 *
 * The task's check shapes that the candidate's own `require` lines admit; small shapes made from
 * the secret seed that satisfy them too, one at least and two where no check shape is admitted;
 * then the task's own shape where the simulator can run it whole. Every small shape meets every
 * kind of data, the task's own shape the kinds that tell most, more of them when thorough. `scope`
 * says in words what that amounts to.
 *
 * The run that counts (instructions, sectors) is one of these trials, on the task's own shape with
 * stated data from a public seed, so that counts repeat; it is judged like every other, so nothing
 * is gained by telling it apart. */
#ifndef EVAL_TRIALS_H
#define EVAL_TRIALS_H

#include "kernel/candidate.h"
#include "spec/data.h"

#define TRIALS_MAX_SHAPES 16

struct trial_shape {
    const struct inst *inst;
    str label;
    struct bound_plan plan;
    bool kinds[DATA_COUNT];
    bool counted; /* on the public seed */
};
struct trials {
    struct trial_shape shapes[TRIALS_MAX_SHAPES];
    size_t n;
    struct bound_plan task_plan; /* at the task's own shape */
    bool task_shape_run;         /* whole */
    str scope;
};

struct trials_options {
    uint64_t secret; /* seed of this run's verification */
    bool count;
    bool thorough;
};

/* False: err is the text of a bad-plan or launch-error verdict, as *launch says. */
bool trials_make(const struct candidate *c, const struct inst *own, const struct trials_options *o,
                 struct arena *a, struct trials *out, bool *launch, struct err *err);

#endif
