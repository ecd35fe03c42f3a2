/* What a worker is asked to do with a candidate (device/wire.h, WIRE_JOB). Private. The job refers
 * to what it was made from, and to the arena. */
#ifndef EVAL_JOB_H
#define EVAL_JOB_H

#include "device/wire.h"
#include "eval/eval.h"
#include "eval/trials.h"

/* All trials of one candidate, made from this secret; its module has `bytes`. */
void job_of_trials(const struct evaluator_options *o, const struct trials *t, uint64_t secret,
                   size_t bytes, struct arena *a, struct job *out);
/* The timed batches of the task's own shape, for several candidates. */
struct job_module {
    const struct bound_plan *plan; /* at the task's own shape */
    size_t bytes;
};
void job_of_duel(const struct evaluator_options *o, uint64_t secret, const struct job_module *m,
                 size_t n, struct arena *a, struct job *out);

#endif
