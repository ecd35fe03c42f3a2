/* Enumerators that the program and the oracle's kernels call by the same names. Read by two
 * compilers (spec/shared.h). */
#ifndef SPEC_ENUMS_H
#define SPEC_ENUMS_H

enum dtype {
#define DTYPE(id, name, bytes, cuda, npy, kind) DTYPE_##id,
#include "spec/dtype.def"
#undef DTYPE
    DTYPE_COUNT
};

enum data_kind {
#define DATA(id, name, what) DATA_##id,
#include "spec/data.def"
#undef DATA
    DATA_COUNT
};

enum reduction {
    REDUCTION_SUM,
    REDUCTION_PROD,
    REDUCTION_MAX,
    REDUCTION_MIN,
    REDUCTION_MEAN,   /* divides by the number of terms selected */
    REDUCTION_ARGMAX, /* of one variable: its value at the first maximum; integer */
    REDUCTION_ARGMIN,
    REDUCTION_COUNT
};

/* How an input is drawn. */
enum dist_kind {
    DIST_UNIFORM,
    DIST_NORMAL,
    DIST_RANDINT,
    DIST_BERNOULLI,
    DIST_ONES,
    DIST_ZEROS,
    DIST_DEFINED
};

#endif
