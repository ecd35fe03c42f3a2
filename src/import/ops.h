/* The table of operators: each of core ATen that the language can express, as a line (ops.def) or a
 * small function.
 *
 * An operator gives the expression of one of its results at given places; it reads its arguments by
 * the functions of write.h. What kind it is decides where the writer makes a let. */
#ifndef IMPORT_OPS_H
#define IMPORT_OPS_H

#include "import/graph.h"
#include "import/text.h"

enum op_kind {
    OP_LEAF,    /* an input or a parameter */
    OP_MADE,    /* from nothing but sizes: zeros, arange */
    OP_RANDOM,  /* random numbers: inputs are defined from them, a module may not compute them */
    OP_VIEW,    /* the same elements at other places */
    OP_POINT,   /* element by element */
    OP_REDUCE,  /* reductions, contractions, normalisations: worth a let of their own */
    OP_PRODUCT, /* … of which the arguments are tensors of the task */
};

struct writer;
struct place;

struct op {
    const char *name;
    enum op_kind kind;
    size_t repeats;   /* how often an argument stands in the expression */
    const char *text; /* of a pointwise operator: @x is argument x; NULL: `read` says it */
    struct ex (*read)(struct writer *w, const struct node *n, size_t out, const struct place *at);
};

const struct op *op_find(str name); /* NULL: not in the table */
size_t op_count(void);
const struct op *op_at(size_t i);

#endif
