/* Evaluation: source in, outcome out, asynchronously, several candidates at once.
 *
 * An evaluator serves one task on one kind of device. It owns the compilers and the workers, starts
 * them on its first use, replaces those that die and tries again what was in flight. `done` is
 * called exactly once for every submitted candidate, from the loop, in any order. */
#ifndef EVAL_EVAL_H
#define EVAL_EVAL_H

#include "base/loop.h"
#include "device/role.h"
#include "eval/outcome.h"
#include "kernel/build.h"
#include "spec/task.h"

struct evaluator;

struct evaluator_options {
    const struct task *task;
    const struct inst *inst; /* the shape that is optimized */
    struct device_name device;
    struct nvrtc_root nvrtc;
    unsigned workers;                  /* each with a device and a judge; 0: one a core */
    unsigned compilers;                /* 0: one a core */
    unsigned compile_limit_ms;         /* 0: the default of the pool */
    const char *cache;                 /* of builds; NULL: none */
    const char *const *worker_command; /* prefix before `worker …`; NULL: ourselves */
    bool seed_given;
    uint64_t seed;         /* of verification; drawn fresh unless given */
    bool thorough;         /* more kinds of data at the task's own shape */
    bool verify_only;      /* no counters, no estimate */
    unsigned run_limit_ms; /* one run on the device; 0: 20 s */
};

typedef void evaluator_done_fn(void *ctx, uint64_t id, struct outcome *o); /* the callee frees o */
/* The environment failed for good (no compiler starts, no worker starts): no further results. */
typedef void evaluator_broken_fn(void *ctx, const struct err *why);

struct evaluator *evaluator_new(struct loop *l, const struct evaluator_options *o,
                                evaluator_done_fn *done, evaluator_broken_fn *broken, void *ctx,
                                struct err *err);
void evaluator_free(struct evaluator *e); /* kills what runs; done is not called for it */
void evaluator_submit(struct evaluator *e, uint64_t id, str file, str source);
size_t evaluator_capacity(const struct evaluator *e); /* candidates that keep it busy */
const struct roofline *evaluator_limit(const struct evaluator *e);

/* What no kernel for the instance can undercut: compulsory bytes at the measured ceilings, or
 * flops, contractions at the tensor cores' rate for the task's class and the rest at plain fp32. */
struct roofline task_limit(const struct gpu *g, const struct inst *in);

/* One candidate, start to end, on a loop of its own. */
bool evaluate_once(const struct evaluator_options *o, str file, str source, struct outcome **out,
                   struct err *err);

#endif
