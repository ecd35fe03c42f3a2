/* Everything counted of an instance, for costs and features. Private to the room. */
#ifndef SPEC_TALLY_H
#define SPEC_TALLY_H

#include "spec/cost.h"

struct tally {
    double plain, special, contraction; /* operations */
    double paired;      /* terms of reductions that pair elements of two tensors, as products do */
    double longest;     /* terms of the longest reduction, on average */
    double longest_sum; /* the same, of those whose results grow with length */
    double fullest_sum; /* … and at the most, over all results */
    double read_bytes, write_bytes;
    double reach_read_bytes, reach_write_bytes; /* for data that ask for the most */
    double elements, reads; /* of inputs: different ones, and as often as they are named */
};
void tally_of(const struct inst *in, struct tally *out);
/* The operations of each statement, without bytes and elements: out[nstatements]. */
void tally_statements(const struct inst *in, struct tally *out);

#endif
