/* Which elements of an input must be read, and of an output written. Private to the room;
 * docs/TASKS.md has the rules.
 *
 * Every read of the tensor is a set of places, the image of its domain under its indices. The
 * answer is the size of their union, found without listing places where the structure allows:
 * dimensions that share no variable multiply, and an index that determines its variables counts
 * them. What remains is marked in arrays, one for each group of dimensions. */
#ifndef SPEC_TOUCH_H
#define SPEC_TOUCH_H

#include "spec/domain.h"

struct touched {
    double elements; /* different ones that every evaluation needs */
    double reads;    /* as often as the mathematics names them */
};
/* `domains`: where each statement is evaluated (demand_domains). */
struct touched touched_of(const struct inst *in, size_t tensor, struct domain *const *domains);

/* Elements of an output that must be written: all, but of an `inout` only those that change. */
double written_of(const struct inst *in, size_t tensor, struct domain *const *domains);

#endif
