/* Statements whose work grows faster than the data: as written, `y[i] = sum(j) abs(x[i] - x[j])`
 * takes N*N operations for 2*N elements. Often the author meant something that takes N.
 *
 * The count of operations is that of cost.h: prefix sums are counted as scans, and what does not
 * depend on an index is counted once. Where a matrix product, an attention, or another reduction
 * that pairs rows of one tensor with rows of another takes as many operations as the statement,
 * nothing is said: such a task cannot do with less. */
#ifndef SPEC_GROWTH_H
#define SPEC_GROWTH_H

#include "spec/task.h"

struct growth {
    size_t statement,
        dim;           /* of the task: the statement, and the dimension that its work grows with */
    int work_power;    /* the work grows with this power of the dimension */
    int data_power;    /* the largest input or output grows with this one, at least the first */
    double operations; /* of the statement, at the instance's shape */
    double elements;   /* of all inputs and outputs */
};

/* The statement with the most excessive work, if there is one. */
bool growth_find(const struct inst *in, struct growth *out);

#endif
