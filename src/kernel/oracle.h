/* The oracle: CUDA text that makes a task's inputs, its expected results in fp64 with the error an
 * honest evaluation makes, and compares, all on the device and by the rules of spec. It is
 * generated from the task, generic over its sizes (they arrive with each case), compiled without
 * contraction, and run by eval/oracle_run.h. It never meets a candidate's code.
 *
 * The text is naive on purpose, one thread an element with loops inside, so that a person can read
 * it to understand a verdict; oracle_plan.h says what is kept in memory. What it may differ in from
 * the CPU's evaluator: the last bits of library functions, the order of terms within a sum and
 * where its chains end (assets/oracle/fold.cuh). */
#ifndef KERNEL_ORACLE_H
#define KERNEL_ORACLE_H

#include "base/err.h"
#include "spec/task.h"

#define ORACLE_MAX_UNIT (2u << 20)

/* Build it with fmad off. Of a task with recurrences it makes inputs and compares; what is expected
 * is evaluated on the host (oracle_plan.h). */
bool oracle_unit(const struct task *t, struct buf *out, struct err *err);

#endif
