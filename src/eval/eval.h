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

#include <signal.h>

struct evaluator;
struct cuda_facts; /* device/cuda.h */

struct evaluator_options {
    const struct task *task;
    const struct inst *inst;   /* the shape that is optimized */
    struct device_name device; /* of the first place: what kernels are compiled for */
    struct nvrtc_root nvrtc;
    unsigned workers;                  /* each with a device and a judge; 0: evaluator_workers */
    size_t candidates;                 /* how many will come, and no more workers; 0: many */
    unsigned compilers;                /* 0: one a core */
    unsigned compile_limit_ms;         /* 0: the default of the pool */
    const char *cache;                 /* of builds; NULL: none */
    const struct worker_place *places; /* workers take turns; all devices are of one type */
    size_t nplaces;                    /* 0: on `device`, here */
    unsigned hello_ms;                 /* for a worker to say hello; 0: LINKS_HELLO_MS */
    bool seed_given;
    uint64_t seed;                  /* of verification; drawn fresh unless given */
    bool fresh_seeds;               /* drawn for each candidate, not once for all */
    const char *assets;             /* folder that wins over the embedded ones; NULL: none */
    bool thorough;                  /* more kinds of data at the task's own shape */
    bool verify_only;               /* no counters, no times */
    bool new_device;                /* each candidate in a device process that nothing ran in */
    bool observe_only;              /* simulator: nothing is judged; counters, by line too */
    bool lines;                     /* simulator: counters by line of the source as well */
    bool small_only;                /* judged at small shapes alone */
    bool must_admit;                /* a kernel that refuses a check shape is rejected */
    uint32_t order;                 /* simulator: the one order of every run; 0: several, drawn */
    bool check_own;                 /* simulator: its checkers watch the task's own shape too */
    bool watch;                     /* simulator: what a GPU judged by value, for the checkers and
                                       for coverage */
    unsigned run_limit_ms;          /* a batch on the device; 0: 20 s */
    size_t memory_bytes;            /* CUDA: free on the GPU */
    const struct cuda_facts *facts; /* CUDA: of the GPU, for records; may be NULL */
    unsigned samples;               /* CUDA: timed runs at least; 0: 6 */
    unsigned time_ms;               /* CUDA: spent on timing a candidate at most; 0: 2 s */
    unsigned screen_ms; /* CUDA, with `duel`: … at first; time_ms is for what comes near the fastest
                           so far. 0: time_ms */
    bool duel; /* CUDA: what comes near the fastest so far is timed again, interleaved with it */
    bool keep; /* accepted candidates stay at hand for evaluator_duel */
    const char *dump; /* folder: the small cases' tensors as .npy files instead of judging */
    /* For evaluate_once and evaluate_many, which fail when the time is over (0: none) or when the
     * flag is set (may be NULL). */
    unsigned give_up_ms;
    const volatile sig_atomic_t *hurry;
    void (*tick)(void *ctx); /* called several times a second meanwhile; may be NULL */
    void *tick_ctx;
};

typedef void evaluator_done_fn(void *ctx, uint64_t id, struct outcome *o); /* the callee frees o */
/* The environment failed for good (no compiler starts, no worker starts): no further results. */
typedef void evaluator_broken_fn(void *ctx, const struct err *why);

struct evaluator *evaluator_new(struct loop *l, const struct evaluator_options *o,
                                evaluator_done_fn *done, evaluator_broken_fn *broken, void *ctx,
                                struct err *err);
void evaluator_free(struct evaluator *e); /* kills what runs; done is not called for it */
void evaluator_submit(struct evaluator *e, uint64_t id, str file, str source);
/* The same for what was accepted before, by the same workers and before what waits for them:
 * verified once more, thoroughly, on a seed that no other candidate met. */
void evaluator_submit_again(struct evaluator *e, str file, str source, evaluator_done_fn *done,
                            void *ctx);
bool evaluator_broken(const struct evaluator *e); /* broken was called */
/* Gives up everything under way; done is not called for it. Workers that were at it begin anew. */
void evaluator_abandon(struct evaluator *e);
/* Times candidates that were kept, by their ids, interleaved in one job. done is called once, with
 * the worker's WIRE_RESULT or with why there is none. At most EVALUATOR_MAX_DUEL. */
#define EVALUATOR_MAX_DUEL 16
typedef void evaluator_duel_fn(void *ctx, const struct result *result, str why);
void evaluator_duel(struct evaluator *e, const uint64_t *ids, size_t n, evaluator_duel_fn *done,
                    void *ctx);
size_t evaluator_capacity(const struct evaluator *e); /* candidates that keep it busy */
/* Where it is not said: one for each of several places, one for a GPU, one a core. */
unsigned evaluator_workers(const struct evaluator_options *o);

/* What no kernel for the instance can undercut: bytes at the measured ceilings, those that data may
 * ask for counted whole, or flops, contractions at the tensor cores' rate for the task's class and
 * the rest at plain fp32. Data that ask for less may be served faster. */
struct roofline task_limit(const struct gpu *g, const struct inst *in);

/* What no kernel can undercut by physics: compulsory bytes at the datasheet's bandwidth (outputs up
 * to the L2's size excused: they may stay there), contractions at the lowest precision's peak. */
double task_floor(const struct gpu *g, const struct inst *in);

/* One candidate, start to end, on a loop of its own. Here and in evaluate_many a candidate that is
 * unjudged is an error of the environment; for evaluate_again it is an outcome. */
bool evaluate_once(const struct evaluator_options *o, str file, str source, struct outcome **out,
                   struct err *err);
/* By an evaluator that there is, as evaluator_submit_again; o: how long. Where it breaks, its
 * `broken` has said why, and err is as it was. */
bool evaluate_again(struct evaluator *e, struct loop *l, const struct evaluator_options *o,
                    str file, str source, struct outcome **out, struct err *err);
struct source_file {
    str file, text;
};
/* The options for the simulator's opinion of what `gpu` judges: small shapes under its checkers,
 * and what blocks of the task's own shape do. */
bool evaluator_options_watching(const struct evaluator_options *gpu, struct arena *a,
                                struct evaluator_options *out, struct err *err);
/* Each of the files `repeat` times. each is called once for every evaluation, in any order; the
 * outcome is freed afterwards. */
typedef void evaluate_each_fn(void *ctx, const struct source_file *f, const struct outcome *o);
bool evaluate_many(const struct evaluator_options *o, const struct source_file *files, size_t n,
                   size_t repeat, evaluate_each_fn *each, void *ctx, struct err *err);
/* Several: each is verified, and those that are right are timed interleaved with each other (CUDA).
 * out: n records, in order, with times and clocks of the duel; the caller frees them. */
bool evaluate_duel(const struct evaluator_options *o, const struct source_file *files, size_t n,
                   struct record **out, struct err *err);
/* The measured ceilings of the GPU, by its harness kernels: copy_bytes_s, …. */
bool evaluate_ceilings(const struct evaluator_options *o, json **out, struct err *err);

#endif
