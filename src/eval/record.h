/* Putting the record of a candidate together (outcome.h). Private. */
#ifndef EVAL_RECORD_H
#define EVAL_RECORD_H

#include "base/spread.h"
#include "eval/eval.h"
#include "eval/links.h"
#include "eval/trials.h"

struct record_input {
    const struct evaluator_options *options;
    const struct roofline *limit;
    double floor_s; /* compulsory bytes at the datasheet's bandwidth */
    str source;
    const struct trials *trials; /* NULL before there are any */
    const struct kernel_facts *kernels;
    size_t nkernels;
    const struct build *build;       /* NULL before compilation */
    const struct ptx_module *module; /* what was compiled; NULL: not known */
    uint64_t seed;
    struct worker_where where;
    double wall_ms, queue_ms;
    struct record_phases phases;
};

/* A verdict reached without a worker. */
struct record *record_verdict(const struct record_input *in, enum verdict v, str why);
/* A worker's result: verdict, runs, counters → estimate, or samples → time. */
struct record *record_result(const struct record_input *in, const struct result *result);
/* The same, with the times of a duel against the fastest so far (NULL: it did not take place). */
struct record *record_duel(const struct record_input *in, const struct result *result,
                           const struct result *duel);
/* Of a module's times. */
struct spread record_spread(const struct result_times *times);
/* Adds the times of the samples to a kernel's record: time_s, ci_low_s, ci_high_s, samples_s, ….
 * What no kernel can take as little as is a verdict, whenever it was measured. */
void record_times(struct record *r, const struct record_input *in,
                  const struct result_times *times);

#endif
