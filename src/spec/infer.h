/* Ranges that a task does not state. Private to the room. */
#ifndef SPEC_INFER_H
#define SPEC_INFER_H

#include "spec/language.h"

/* The ranges of reductions and the extents of lets, when all right sides are read and the
 * statements stand in order. False: one does not follow from anything. */
bool task_infer(struct parser *p);

#endif
