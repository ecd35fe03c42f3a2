/* A module as a graph of ATen operators: what the helper recorded (assets/import/helper.py),
 * checked and taken apart.
 *
 * The JSON comes from a process that runs somebody else's code, so every reference, rank and length
 * is checked here; what follows may rely on them. Sizes are texts: a number, or an expression over
 * the task's dimensions. Everything lives in the arena and borrows from the JSON tree. */
#ifndef IMPORT_GRAPH_H
#define IMPORT_GRAPH_H

#include "base/arena.h"
#include "base/json.h"
#include "spec/task.h"

enum {
    GRAPH_MAX_NODES = 8192,
    GRAPH_MAX_OUTS = 128, /* of one node */
    GRAPH_MAX_LISTED = 512,
    GRAPH_MAX_DIMS = 1024,
    GRAPH_MAX_PATH = 1024, /* letters of a submodule's path */
};

struct ref {
    size_t node, out;
};

struct value {
    enum dtype dtype;
    size_t rank;
    str extent[TASK_MAX_RANK];
    bool exists;  /* an operator may leave one of its results out */
    size_t uses;  /* how often expressions repeat it */
    str name;     /* of the tensor of the task that holds it; empty: none, it is an expression */
    bool dropped; /* a let: it has no dimensions of extent 1 */
};

struct op;
struct node {
    str op, module;
    int64_t line; /* of the user's file; 0: unknown */
    const json *args;
    const struct op *info; /* NULL: not in the table */
    struct value *outs;
    size_t nouts;
    /* What the writer decides (write.c): */
    bool needed;
    bool searched; /* for random numbers that inputs are computed from */
    bool forced;   /* it must be a tensor of the task: an operator reads it as one */
    bool is_let;
    bool pending;              /* the let is made of the view that follows */
    const struct node *origin; /* a view of what is pending: the let is called after that */
    bool is_output;
    size_t users, user; /* nodes that read it; the last of them */
    size_t weight;      /* operators in its expression */
};

struct dimension {
    str name, is; /* is: derived, from this; else empty */
    int64_t value;
    bool unused; /* by the task: set by the writer */
};

struct graph {
    str name, class, source, pytorch, torch;
    struct dimension *dims;
    size_t ndims;
    struct node *nodes;
    size_t nnodes;
    struct ref *outputs;
    str *output_names;
    size_t noutputs;
    const json *checks, *dropout, *updates;
    bool matmul_tf32, convolution_tf32;
};

bool graph_read(const json *j, struct arena *a, struct graph *out, struct err *err);

/* A reference in an argument; false: it is none. */
bool graph_ref(const struct graph *g, const json *j, struct ref *out);
const struct value *graph_value(const struct graph *g, struct ref r);
/* Calls f for every reference in a node's arguments, in order, with the argument's name. */
void graph_each_ref(const struct graph *g, const struct node *n,
                    void (*f)(void *ctx, const char *name, struct ref r), void *ctx);

#endif
