/* The measuring behind `bench`: several kernels of one task, and a baseline, on the same device.
 *
 * Kernels are verified and timed interleaved in one job of the evaluator. Against PyTorch, whose
 * samples come from a process of its own, blocks alternate: kernels, PyTorch, kernels, PyTorch, …;
 * whichever does not measure sleeps. A kernel is verified anew in every block and leaves at its
 * first verdict other than accepted. On the simulator there are no samples, only estimates. */
#ifndef UI_BENCH_RUN_H
#define UI_BENCH_RUN_H

#include "base/spread.h"
#include "eval/eval.h"
#include "eval/torch.h"

enum bench_baseline {
    BASELINE_NONE,
    BASELINE_NAIVE,
    BASELINE_TORCH,
    BASELINE_TORCH_EAGER, /* without torch.compile, which takes its time to start */
};

struct bench_samples {
    double *s;
    size_t n, cap;
};

struct bench_kernel {
    str file, source;
    enum verdict verdict;
    bool estimated;
    double time_s, low_s, high_s; /* INFINITY where not accepted; interval 0, 0 where unknown */
    double limit_s;
    struct bench_samples samples;
    struct record *record; /* of its last block; owned */
};

/* One of PyTorch's ways: eager or compiled, in the class's numerics or PyTorch's own. */
struct bench_way {
    enum torch_mode mode;
    enum torch_numerics numerics;
    bool ok;
    struct err why; /* where not ok */
    struct bench_samples samples;
    struct spread spread;
};
enum { BENCH_WAYS = 4 };

struct bench {
    struct evaluator_options eo;
    struct bench_kernel *kernels; /* sorted by time after bench_run, rejected ones last */
    size_t nkernels;
    enum bench_baseline baseline;
    const char *python, *assets;
    struct err no_baseline; /* why there is none, where one was asked for */
    struct bench_way ways[BENCH_WAYS];
    json *torch;       /* the helper's facts; owned, NULL: none */
    double baseline_s; /* what a speedup is stated against; 0: nothing */
    size_t blocks;
};

enum bench_baseline bench_baseline_of(const char *name); /* as --baseline has it */
const char *bench_baseline_name(enum bench_baseline b);

/* kernels, eo, baseline, python and assets are set; fills the rest. False only where the
 * environment failed; a baseline that cannot be had is no failure. */
bool bench_run(struct bench *b, struct arena *a, struct err *err);
void bench_release(struct bench *b);

bool bench_is_naive(const struct bench_kernel *k); /* the baseline among the kernels */

#endif
