/* What becomes of a result when it is stored. Private to the room. */
#ifndef SPEC_FINISH_H
#define SPEC_FINISH_H

#include "spec/value.h"

/* How results of a statement are stored. */
struct finish {
    enum dtype dtype;
    bool typed_let, output;
    struct limits limits;
};

/* Values v and variances e of n results as they are stored: an output's variance becomes its
 * estimate, a typed let is rounded. None of the arrays overlap. */
void finish_results(const struct finish *f, const double *v, const double *e, size_t n,
                    double *value, double *error);

#endif
