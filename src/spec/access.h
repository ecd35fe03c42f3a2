/* The reads of one tensor, each with the domain it happens in. Private to the room.
 *
 * Left out is what need not happen: reads under a condition on data, reads outside the tensor that
 * padding answers, elements that are assumed to be zero. A condition that an index equals a number
 * from the data happens once along that index. */
#ifndef SPEC_ACCESS_H
#define SPEC_ACCESS_H

#include "spec/domain.h"

enum { ACCESSES_MOST = 32 };

struct access {
    struct domain *d;
    const struct expr *read;
    bool gather; /* some index comes from data */
};

struct accesses {
    const struct inst *in;
    size_t tensor;
    struct access access[ACCESSES_MOST]; /* different ones */
    size_t n;
    bool all;     /* none was left out for want of room; set before adding */
    double reads; /* elements, as often as the mathematics names them */
};
void accesses_add(struct accesses *c, struct domain *d, const struct expr *e);
void accesses_release(struct accesses *c);

/* Where each statement must be evaluated: outputs everywhere, a let where it is read, as far as all
 * its reads need the same part (the triangle of a causal attention). out[nstatements]: mem_free. */
void demand_domains(const struct inst *in, int64_t *budget, struct domain **out);

#endif
