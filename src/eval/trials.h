/* What a candidate is tried on: shapes, and batches of cases for each.
 *
 * The task's check shapes that the candidate's own `require` lines admit (those that they refuse
 * are listed, or with `must_admit` are why it is rejected); small shapes made from the secret seed
 * that satisfy them too, two where so many can be found; then the task's own shape where the device
 * can run it whole. Where the simulator cannot, shapes are made that show more of what happens
 * there: its longest dimension with the others shrunk, and extra ones, which are run as long as the
 * task's own shape does something that no judged run did. Every small shape meets most kinds of
 * data, some take turns; those that are there for their tails meet few. The task's own shape meets
 * the kinds that tell most, and when thorough all others too or, where it is large, rows of them.
 * `scope` says in words what that amounts to.
 *
 * Where a plan has steps that are done once, two small shapes and the task's own meet pairs of
 * cases with the same parameters and other inputs: the second is right only if what was prepared
 * for the first depends on parameters alone.
 *
 * On the simulator any other batch is one case, and the run that counts (instructions, sectors) is
 * one of these trials, on the task's own shape with stated data from a public seed, so that counts
 * repeat; it is judged like every other, so nothing is gained by telling it apart. Small shapes
 * with stated data are watched by the simulator's checkers, and one of them each with two further
 * kinds of data; when thorough, a few blocks of the task's own shape are, too. All other kinds of a
 * small shape run in orders that are drawn, each in its own. On a GPU a batch is all the cases of a
 * shape, and at the task's own shape every launch is timed and verified, on contents of several
 * kinds and seeds. */
#ifndef EVAL_TRIALS_H
#define EVAL_TRIALS_H

#include "device/wire.h"
#include "eval/memory.h"
#include "kernel/build.h"
#include "kernel/candidate.h"
#include "ptx/ptx.h"
#include "target/gpu.h"

#define TRIALS_MAX_SHAPES  32
#define TRIALS_MAX_BATCHES (TRIALS_MAX_SHAPES * DATA_COUNT)
#define TRIALS_MAX_CASES   24
#define TRIALS_PATIENCE_MS (3000 * TRIALS_SLOWER) /* for one run that need not be */
#if defined(__SANITIZE_ADDRESS__)
#define TRIALS_SLOWER 10 /* the same work in a build with sanitizers */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TRIALS_SLOWER 10
#endif
#endif
#ifndef TRIALS_SLOWER
#define TRIALS_SLOWER 1
#endif

struct trial_shape {
    const struct inst *inst;
    str label;
    struct bound_plan plan;
};
/* A check shape of the task that is not tried. */
struct trial_skipped {
    str label, require; /* the line that refuses it; empty: there are more than are tried */
};
struct trials {
    struct trial_shape shapes[TRIALS_MAX_SHAPES];
    size_t n;
    struct trial_skipped *skipped; /* in `mem` */
    size_t nskipped;
    /* Counted batches are on the public seed. What is patient says nothing of a kernel that it
     * gives up; extra ones are run only while outcomes of the task's own shape are not covered. */
    struct job_batch batches[TRIALS_MAX_BATCHES];
    size_t nbatches;
    struct arena *mem;           /* of their cases */
    struct bound_plan task_plan; /* at the task's own shape */
    bool task_shape_run;         /* whole */
    bool covers;                 /* it is not: blocks of it are run, and what they do is covered */
    struct memory_plan room;     /* on a GPU: for contents of the task's own shape */
    size_t contents, wanted;     /* … that are timed, and that would be, had it the memory */
    bool watches;                /* it is, and blocks of it are run once more under the checkers */
    str scope;
};

struct trials_options {
    uint64_t secret; /* seed of this run's verification */
    bool thorough;
    bool measure;    /* counters, or times */
    bool observe;    /* nothing but that: no trials */
    bool small_only; /* not the task's own shape */
    uint32_t order;  /* of every batch; 0: drawn for all but the first of each small shape */
    bool check_own;  /* the checkers watch the task's own shape as well, where it is run whole */
    bool must_admit; /* a check shape that the candidate refuses is a fault of its plan */
    bool watch; /* simulator: for its checkers and for coverage; values were judged elsewhere */
    bool gpu;
    bool one_by_one; /* each case of a small shape in a batch of its own, as it will be dumped */
    size_t memory;   /* of the GPU, for cases */
    const struct memory_need *need; /* of the task's own shape; NULL: not known */
    size_t workspaces;              /* for trials_timed: of the candidates there, in bytes */
};

/* False: err is the text of a bad-plan or launch-error verdict, as *launch says. */
bool trials_make(const struct candidate *c, const struct inst *own, const struct trials_options *o,
                 struct arena *a, struct trials *out, bool *launch, struct err *err);
/* The timed batches of the task's own shape alone, as shape 0. */
void trials_timed(const struct inst *own, const struct trials_options *o, struct arena *a,
                  struct trials *out);

/* Whether the launches of a plan can run on a GPU at all: from what the compiler says of their
 * kernels, before any device is asked, and therefore alike on all of them.
 *
 * UNSUPPORTED: the GPU has no such thing. LAUNCH_ERROR: a block does not fit an SM, or a
 * cooperative grid the GPU. `why` says which kernel it is, and how much would fit. Each launch is
 * told how many of its blocks an SM holds. */
enum verdict plan_fits_gpu(const struct gpu *g, const struct build *b, const struct ptx_module *m,
                           struct bound_plan *p, struct err *why);

#endif
