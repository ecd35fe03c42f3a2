/* A bound plan made ready to run on a GPU over one case's memory: functions looked up, arguments
 * laid out and checked against the kernels' parameters, tensor maps encoded. All of that is host
 * work that must not be inside a timed region, so it is done once for each (module, case) before
 * the first run. */
#ifndef DEVICE_CUDA_PLAN_H
#define DEVICE_CUDA_PLAN_H

#include "device/harness.h"
#include "kernel/candidate.h"

/* Where a case's memory is; address 0: there is none. */
struct cuda_span {
    cu_address at;
    uint64_t bytes;
};
struct cuda_memory {
    struct cuda_span tensors[TASK_MAX_TENSORS];
    struct cuda_span workspaces[PLAN_MAX_WORKSPACES];
};

struct ready_step;
struct ready_plan {
    const struct bound_plan *plan;
    struct ready_step *steps;
    size_t nsteps;
    size_t local_bytes;                               /* of a thread, in the kernel that has most */
    struct cuda_span workspaces[PLAN_MAX_WORKSPACES]; /* the part of each that this plan uses */
};

/* Everything lives in the arena, and `p` must outlive the result. False with *verdict other than
 * ACCEPTED where the plan cannot be launched; ACCEPTED: our own trouble. */
bool ready_plan_make(const struct cuda *c, cu_module module, const struct bound_plan *p,
                     const struct cuda_memory *m, struct arena *a, struct ready_plan *out,
                     enum verdict *verdict, struct err *why);

/* Fills the plan's workspaces with noise; with `keeps`, not those that are prepared. */
int ready_plan_poison(const struct cuda *c, struct harness *h, const struct ready_plan *r,
                      bool keeps);
/* Queues the steps from `first` to before `end`, in order. With `waits`, waits for each, so that
 * *at, the step that failed, is the one at fault. */
int ready_plan_queue(const struct cuda *c, const struct harness *h, const struct ready_plan *r,
                     size_t first, size_t end, bool waits, size_t *at);
/* "kernel gemm", "memset of workspace 2", for a message about the step; one past the last: all of
 * the plan's kernels. */
void ready_plan_name(const struct ready_plan *r, size_t step, struct buf *out);

#endif
