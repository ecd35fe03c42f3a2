/* The order of an imported module, as ORDER_FILE of its folder says it (docs/IMPORT.md): which
 * tasks there are, which tensors go in and out of each use of one, and how often it is run.
 *
 * What flows between uses has a name: inputs and parameters of the module have theirs, results are
 * named by the use that gives them. After order_read every name that is read is an input, a
 * parameter or a result of an earlier use, names are given once, and sizes are expressions over the
 * module's dimensions. Everything lives in the arena. */
#ifndef EXPORT_ORDER_H
#define EXPORT_ORDER_H

#include "base/arena.h"
#include "base/err.h"

#define ORDER_FILE "order.json"
enum { ORDER_MAX_RANK = 8 };

/* One tensor of a task, and what it is connected with (docs/IMPORT.md). */
struct order_link {
    str tensor; /* of the task */
    str flow;   /* empty: zeros for a state; a result that nothing reads */
    bool picked;
    size_t axis; /* picked: the slice `index` of the flow along it */
    int64_t index;
    bool each;  /* the slice of the step, along the use's axis */
    bool state; /* at first the flow, then what the task gave as `next` in the step before */
    str next;
    str last; /* a result: the flow that holds its last value */
};

struct order_use {
    size_t task; /* among those of the order */
    str module;  /* the submodule, for people */
    struct order_link *in, *out;
    size_t nin, nout;
    bool repeats, reverse;
    size_t axis; /* of sequences: that of time */
    str over;    /* a number, or a dimension */
};

struct order_dim {
    str name;
    int64_t value;
    str is; /* derived: an expression over other dimensions; otherwise empty */
};

struct order_leaf { /* an input or a parameter of the module */
    str name;
    str extent[ORDER_MAX_RANK];
    size_t rank;
    str dtype;
    bool parameter, buffer; /* buffer: a parameter that the module has as such */
};

struct order_task {
    str name; /* of its file, without the suffix */
    size_t uses;
    double runs; /* with every step of those that repeat, at the module's own sizes */
};

struct order {
    str text; /* the file */
    str module, title;
    str *left_out;
    size_t nleft_out;
    struct order_dim *dims;
    size_t ndims;
    struct order_leaf *leaves; /* inputs, then parameters */
    size_t nleaves, ninputs;
    struct order_task *tasks;
    size_t ntasks;
    struct order_use *uses;
    size_t nuses;
    str *outputs; /* names of flows */
    size_t noutputs;
    double runs;
};

bool order_exists(const char *folder);
/* False and err (ERR_INPUT): it is none. */
bool order_read(const char *folder, struct arena *a, struct order *out, struct err *err);
const struct order_task *order_find(const struct order *o, str task); /* NULL: not one of it */
const struct order_dim *order_dim(const struct order *o, str name);   /* NULL: not one of it */
const struct order_leaf *order_leaf(const struct order *o, str name); /* NULL: not one of it */

#endif
