/* Holds a chain of tasks against the module that it was made of.
 *
 * On the same inputs, at several shapes and seeds: the module in float64 by the helper, and the
 * reference of each task in order, what flows between them in float64 too. */
#ifndef IMPORT_COMPARE_H
#define IMPORT_COMPARE_H

#include "eval/python.h"
#include "import/chain.h"

enum { COMPARED_SEEDS = 5, COMPARED_SHAPES = 3 };

struct comparison_options {
    const char *file; /* the module's, for messages */
    struct python *python;
    unsigned threads, limit_s;
};

struct compared {
    size_t shapes, seeds;
    double error; /* the largest, relative */
    bool line;    /* the torch line gave the module's results everywhere */
};

/* At every check shape that is small enough to be computed, and at the task's own where that is.
 * False and err: it is not the same (ERR_NO), or could not be compared. */
bool compare_chain(const struct comparison_options *o, const struct chain *chain, struct arena *a,
                   struct compared *out, struct err *err);

#endif
