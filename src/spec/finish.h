/* What becomes of a result when it is stored. Private to the room. */
#ifndef SPEC_FINISH_H
#define SPEC_FINISH_H

#include "spec/program.h"

/* How results of a statement are stored. */
struct finish {
    enum dtype dtype;
    bool typed_let, output;
    struct limits limits;
};

/* Values and variances of up to LANES results in place: an output's variance becomes its estimate,
 * a typed let is rounded. */
void finish_results(const struct finish *f, double *v, double *e, size_t n);

#endif
