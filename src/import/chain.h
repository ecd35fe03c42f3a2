/* A module as tasks that run in order: one, or as many as its graph was cut into.
 *
 * A part is a task; a use is one run of it. The same part is used wherever the module repeats
 * itself with the same sizes, each time with parameters of its own. What flows between uses has a
 * name: inputs and parameters of the module have theirs, results are called after the submodule
 * that computes them. Everything lives in the arena of the import.
 *
 * A use may repeat over time (`repeats`): its task is one step. Of what it reads, some is the
 * step's own slice of a sequence (`each`), some is carried from step to step (`state`). */
#ifndef IMPORT_CHAIN_H
#define IMPORT_CHAIN_H

#include "base/arena.h"
#include "base/json.h"
#include "import/graph.h"

struct link {
    str tensor;  /* of the task */
    str flow;    /* what it is connected with; empty: zeros for a state, nothing for a result */
    bool picked; /* one slice of it: the element `index` of dimension `axis`, which is left out */
    size_t axis;
    int64_t index;
    bool each;  /* … the slice of the step, along the use's axis; a result is stored there */
    bool state; /* an input that is carried: first the flow, then what the task gave as `next` */
    str next;
    str last; /* a result of a use that repeats: the flow tensor that holds its last value */
};

struct use {
    size_t part;
    str module; /* the submodule, for people */
    struct link *in, *out;
    size_t nin, nout;
    bool repeats, reverse;
    size_t axis; /* of sequences: that of time */
    str over;    /* how many steps, as an expression over dimensions */
};

struct part {
    str name; /* of its file, without the suffix; the module's where there is one part */
    str text; /* the task */
    str line; /* its torch line, which is not in the text yet; empty: none */
    bool wrong_line;
    size_t uses, tried; /* tried: how often the line was held against the task */
};

struct leaf {
    str name,
        path; /* in tasks, and in the module: "layer1_0_conv1_weight", "layer1.0.conv1.weight" */
    bool is_input, is_buffer;
    str shape, dtype; /* "[batch_size,3,7,7]" */
};

struct chain {
    str name, title;
    struct part *parts;
    size_t nparts;
    struct use *uses;
    size_t nuses;
    struct leaf *leaves; /* inputs and parameters that are read */
    size_t nleaves;
    str *outputs; /* flow tensors, in the order of the module's results */
    size_t noutputs;
    const struct graph *graph; /* its dimensions */
    const json *checks;        /* with values for derived dimensions too */
};

void chain_release(struct chain *c); /* what is not in the arena */

/* How a module is written down for others: the file of the order (export/order.h reads it). */
void chain_write(const struct chain *c, struct buf *out);

#endif
