/* The torch line of a part of a module: its operators by PyTorch's own names, in one expression.
 *
 * What a user calls in forward() belongs to the whole module; a part has its operators of ATen
 * alone, so its line is `torch.ops.aten…`, each value named where it is made. compare.h holds it
 * against the task. */
#ifndef IMPORT_LINE_H
#define IMPORT_LINE_H

#include "import/graph.h"

/* `g`: the part's graph, of which `task` was written. Empty: it has no such line, because an
 * operator draws numbers or a size is no dimension of the task. */
str torch_line(const struct graph *g, const struct task *task, struct arena *a);

#endif
