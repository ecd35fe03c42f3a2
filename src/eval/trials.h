/* What a candidate is tried on: shapes, and the data for each.
 *
 * The task's check shapes that the candidate's own `require` lines admit, then, where those are
 * fewer than two, small shapes made to satisfy them, then the task's own shape where the simulator
 * can run it whole. Every small shape meets every kind of data; the task's own shape meets the
 * kinds that tell most. `scope` says in words what that amounts to. */
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
};
struct trials {
    struct trial_shape shapes[TRIALS_MAX_SHAPES];
    size_t n;
    struct bound_plan task_plan; /* at the task's own shape */
    bool task_shape_run;         /* the last of shapes is the task's own */
    str scope;
};

/* False: err is the text of a bad-plan or launch-error verdict, as *launch says. */
bool trials_make(const struct candidate *c, const struct inst *task_inst, struct arena *a,
                 struct trials *out, bool *launch, struct err *err);

#endif
