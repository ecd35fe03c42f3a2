/* Whether the launches of a plan can run at all, from what the compiler says of their kernels. */
#ifndef EVAL_FIT_H
#define EVAL_FIT_H

#include "kernel/build.h"
#include "kernel/candidate.h"
#include "target/gpu.h"

/* why says which kernel does not fit an SM. */
bool blocks_fit(const struct gpu *g, const struct build *b, const struct bound_plan *p,
                struct err *why);

#endif
