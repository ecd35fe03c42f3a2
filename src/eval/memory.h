/* What judging takes of a GPU's memory, worked out before any of it is taken. Pure arithmetic: a
 * GPU is never touched.
 *
 *     beside all      the contexts of judge and device, code, what the L2 is flushed with
 *     once            intermediate values of the reference, the workspaces of the candidate
 *     each content    its tensors, and what is expected of its outputs where that is kept
 *
 * Where the memory does not hold everything that is wanted, less is taken, in this order: fewer
 * contents at a time; then what is expected is not kept, and made again for each comparison; then
 * it is made of a sample of tiles alone (eval/tiles.h), which takes no memory of the GPU. Where not
 * even the tensors of one content fit, the shape is not run. The scope says what was left out. */
#ifndef EVAL_MEMORY_H
#define EVAL_MEMORY_H

#include "spec/task.h"

/* Of the memory that was free when the judge started, for cases, references and workspaces. */
#define MEMORY_SHARE 0.8
/* … for the references of one case at the most, */
#define MEMORY_KEEP_SHARE 0.15
/* … and of all; those of further cases are made again for each comparison. */
#define MEMORY_KEPT_SHARE 0.4
/* Threads that keep a GPU busy: twice what a large one holds of those with many registers. */
#define MEMORY_THREADS (1 << 17)

/* How much the references of one more case may keep, where others have kept so much. */
size_t memory_keep_bytes(size_t room, size_t kept);

/* What a shape takes, in bytes. */
struct memory_need {
    size_t tensors; /* of one content, in whole granules of mapped memory */
    size_t kept;    /* … what is expected of it, where that is kept */
    size_t shared;  /* once: intermediate values, where it is */
    size_t remade;  /* … and where it is not */
};
/* On a GPU with so much free memory. */
bool memory_need_of(const struct inst *in, size_t memory, struct memory_need *out, struct err *err);

struct memory_plan {
    size_t contents; /* at a time; 0: not even one fits */
    bool remade;     /* nothing of the references is kept */
    bool sampled;    /* … nor made: tiles are compared */
    size_t bytes;    /* that are taken, of `memory` */
};
struct memory_plan memory_plan_of(const struct memory_need *n, size_t memory, size_t workspaces,
                                  size_t wanted);

#endif
