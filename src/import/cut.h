/* Cuts a graph that is too large for one task, or that recurs over time, into several.
 *
 * Submodules that fit stay whole; one that does not is taken apart into what it calls, and what is
 * left between calls is joined with what comes before, so that a task begins where few tensors
 * cross: before a product that reads a parameter. Parts with the same text are one. */
#ifndef IMPORT_CUT_H
#define IMPORT_CUT_H

#include "import/chain.h"

/* `whole` is the graph as JSON, `g` the same, read. False and err as in write_task. */
bool cut_graph(const json *whole, const struct graph *g, const char *file, struct arena *a,
               struct chain *out, struct err *err);
/* The chain of a graph that is one task: `text`, as write_task made it. */
void cut_none(const struct graph *g, str name, str text, const struct task *task, struct arena *a,
              struct chain *out);
/* Has it a recurrence, which no single task can hold? */
bool cut_needed(const struct graph *g);

#endif
