/* What elements have in common when they are compared, and the verdict on them together. For this
 * room and the oracle's runner (eval/oracle_run.h), which adds up what blocks of a device saw. */
#ifndef SPEC_COMPARE_H
#define SPEC_COMPARE_H

#include "spec/compare_value.h"
#include "spec/reference.h"

struct compare_sum {
    struct compared all;
    struct mismatch first[MISMATCH_KEPT];
    size_t nfirst;
};
void compare_conclude(const struct compare_sum *sum, enum accuracy accuracy,
                      struct comparison *out);

#endif
