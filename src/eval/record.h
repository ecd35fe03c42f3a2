/* The record of a candidate: what is known of it, put together once, as JSON. */
#ifndef EVAL_RECORD_H
#define EVAL_RECORD_H

#include "eval/eval.h"
#include "eval/trials.h"

struct record_input {
    const struct evaluator_options *options;
    const struct roofline *limit;
    double floor_s; /* compulsory bytes at the datasheet's bandwidth */
    str source;
    const struct trials *trials; /* NULL before there are any */
    const struct kernel_facts *kernels;
    size_t nkernels;
    const struct build *build; /* NULL before compilation */
    uint64_t seed;
    double wall_ms;
};

/* A verdict reached without a worker. */
json *record_verdict(const struct record_input *in, enum verdict v, str why);
/* A worker's result: verdict, runs, counters → estimate. */
json *record_result(const struct record_input *in, const json *result);

#endif
