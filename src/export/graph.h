/* An imported module whose tasks have been searched, as one thing to export: the order of its tasks
 * (order.h), the kernels of each, and what flows between them.
 *
 * A part is a task with its kernels. One without any is computed by the task's torch line, which a
 * package for PyTorch can do and others cannot. Everything lives in the arena it was loaded in. */
#ifndef EXPORT_GRAPH_H
#define EXPORT_GRAPH_H

#include "export/export.h"
#include "export/order.h"

struct export_part {
    str name; /* of its task in the order */
    const struct task *task;
    const struct inst *inst;
    struct export_kernel *kernels; /* one for each folder that came to one */
    size_t n;
};

/* What flows: an input or a parameter of the module, or the result of a use. */
struct export_flow {
    str name; /* "lstm.weight_ih_l0", "blocks.0:2" */
    str id;   /* the same as an identifier, unlike all others of the graph */
    enum dtype dtype;
    size_t rank;
    const struct order_leaf *leaf; /* NULL: a result */
    size_t made,
        used; /* the use that gives it, and the last one that reads it; leaves: made is 0 */
    const struct tensor *tensor; /* of the task that gives it */
    bool is_sequence;            /* … slice by slice, along the use's axis */
    bool is_output;
};

struct export_graph {
    struct order order;
    struct export_part *parts; /* as order.tasks */
    struct export_flow *flows; /* leaves as in the order, then results in the order of uses */
    size_t nflows;
    size_t without; /* parts that have no kernel */
};

/* Whether a folder holds the runs of an imported module's tasks. */
bool export_is_graph(const char *folder);
/* The module of one folder, or of several: each then adds its kernels to the parts. A part without
 * a run, one whose run is of another task than the folder's, and a kernel that may not be exported
 * (run.h) are refused. */
bool export_graph_load(char *const *folders, size_t n, bool sampled, const struct nvrtc_root *nvrtc,
                       const char *cache, struct arena *a, struct export_graph *out,
                       struct err *err);
/* All kernels of all parts, as a package lists them. */
void export_graph_kernels(const struct export_graph *g, struct arena *a, struct export_package *p);

const struct export_flow *graph_flow(const struct export_graph *g, str name);
const struct export_part *graph_part(const struct export_graph *g, const struct order_use *u);
const struct tensor *graph_tensor(const struct export_graph *g, const struct order_use *u,
                                  str name);
const struct order_link *graph_link(const struct order_link *links, size_t n, str tensor);

#endif
