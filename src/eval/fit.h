/* Whether the launches of a plan can run on a GPU at all: from what the compiler says of their
 * kernels, before any device is asked, and therefore alike on all of them. */
#ifndef EVAL_FIT_H
#define EVAL_FIT_H

#include "kernel/build.h"
#include "kernel/candidate.h"
#include "ptx/ptx.h"
#include "target/gpu.h"

/* UNSUPPORTED: the GPU has no such thing. LAUNCH_ERROR: a block does not fit an SM, or a
 * cooperative grid the GPU. `why` says which kernel it is, and how much would fit. */
enum verdict plan_fits_gpu(const struct gpu *g, const struct build *b, const struct ptx_module *m,
                           const struct bound_plan *p, struct err *why);

#endif
