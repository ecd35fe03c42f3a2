/* Which values of a graph become lets: fills in what struct node says of it. Leaves that are
 * tensors of the task have their names before. */
#ifndef IMPORT_PLAN_H
#define IMPORT_PLAN_H

#include "import/ops.h"

void plan_lets(struct graph *g);
/* Does a node's result depend on what this argument holds? Not on a tensor that only lends its
 * shape. */
bool plan_reads(const struct node *n, const char *name);

#endif
