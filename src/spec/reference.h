/* The reference: every output element in fp64, and beside it an estimate of the error that an
 * honest evaluation in the task's accuracy class makes.
 *
 * The estimate is statistical: roundings of the class, added in quadrature, propagated through the
 * derivative of each operation, with an absolute floor for subnormals. An element's error is judged
 * in units of it; a tensor by the worst element and by the root mean square. An estimate of
 * infinity says that the element is not judged: its value came from an operation the mathematics
 * leaves undefined (inf - inf), not from a NaN that was put in. Where the value is infinite an
 * estimate above 0 says that NaN is as good. */
#ifndef SPEC_REFERENCE_H
#define SPEC_REFERENCE_H

#include "spec/task.h"

struct reference {
    size_t tensor;
    size_t count;
    double *value;
    double *estimate; /* absolute, in the output's own unit, for the task's class */
    /* Of an output that is an argmax or argmin: other indices of an element that are as good within
     * the errors, a bit each from tie_lo on, tie_words words an element. NULL: there are none. */
    uint64_t *ties;
    int64_t tie_lo;
    size_t tie_words;
};

/* One reference per output tensor, in order of declaration; inputs[i] for tensor i (NULL for those
 * that are no input). `threads` ≥ 1. Heap memory: reference_release. Also reports the largest
 * finite magnitude of any intermediate (data_scale_find uses it); peak may be NULL. */
bool reference_eval(const struct inst *in, const void *const *inputs, unsigned threads,
                    struct reference **out, size_t *n, double *peak, struct err *err);
/* The same for other inputs of the instance, in the memory of its references. False: they are
 * released, *n is 0. */
bool reference_eval_again(const struct inst *in, const void *const *inputs, unsigned threads,
                          struct reference **refs, size_t *n, struct err *err);
void reference_release(struct reference *refs, size_t n);

#define MISMATCH_KEPT 8
struct mismatch {
    int64_t index; /* linear element */
    double expected, got, estimate;
};
struct comparison {
    uint64_t judged; /* elements compared by value */
    uint64_t wrong;  /* beyond the limit for one element */
    uint64_t
        nonfinite;     /* NaN or infinite where the reference is not, or the reverse, or the sign */
    double worst, rms; /* error over estimate */
    double worst_limit, rms_limit;
    bool pass;
    bool pass_looser; /* would pass in a looser class: "inaccurate" rather than "wrong" */
    struct mismatch first[MISMATCH_KEPT];
    size_t nfirst;
};
/* got: the output tensor's elements in its dtype. */
void reference_compare(const struct inst *in, const struct reference *ref, const void *got,
                       unsigned threads, struct comparison *out);

/* What an element (index i of the tensor) is called: "y[3,17]". */
str element_name(const struct inst *in, size_t tensor, int64_t index, struct arena *a);

#endif
