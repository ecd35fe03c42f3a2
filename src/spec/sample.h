/* A small instance that stands in for a large one, where something about a task is found by
 * evaluating it. Private to the room. */
#ifndef SPEC_SAMPLE_H
#define SPEC_SAMPLE_H

#include "spec/task.h"

/* Whether evaluating it on one kind of data takes a few milliseconds. */
bool inst_is_small(const struct inst *in);

/* The instance itself, its dimensions cut, or a `check` shape: the first that is small. Where none
 * is, the check shape of fewest elements. What is made lies in the arena. */
const struct inst *inst_sample(const struct inst *in, struct arena *a);

#endif
