/* What a task costs at the least, and what kind of work it is, read off its expressions. */
#ifndef SPEC_COST_H
#define SPEC_COST_H

#include "spec/task.h"

struct cost {
    double flops_add_mul;     /* additions, multiplications, comparisons of reals, divisions */
    double flops_special;     /* exp, log, sqrt, tanh, … */
    double flops;             /* both */
    double flops_contraction; /* of flops: products summed, what tensor cores can do */
    double read_bytes, write_bytes, compulsory_bytes; /* each touched element once */
    double intensity;                                 /* flops / compulsory byte */
    /* The same for data that ask for the most: both sides of a condition on data, as many different
     * places from data as there can be. Equal to them where data decide nothing. */
    double reach_read_bytes, reach_write_bytes;
};
void cost_of(const struct inst *in, struct cost *out);

enum workload {
    WORKLOAD_POINTWISE,
    WORKLOAD_REDUCTION,
    WORKLOAD_NORMALISATION, /* pointwise in its input and reductions of it */
    WORKLOAD_SCAN,
    WORKLOAD_WINDOW,      /* pooling: reductions over a small stated range beside the index */
    WORKLOAD_CONTRACTION, /* products summed: matmul, convolution */
    WORKLOAD_ATTENTION,   /* contraction, normalisation, contraction */
    WORKLOAD_LOSS,        /* everything to one number */
    WORKLOAD_GATHER,      /* reads at places that data say */
    WORKLOAD_COUNT
};
const char *workload_name(enum workload w);

/* For retrieval of history and for the planners. */
struct features {
    enum workload workload;
    double log2_elements; /* of the largest output */
    double log2_bytes;
    double intensity;
    double special_share; /* of flops */
    size_t inputs, outputs, rank;
    enum dtype dtype;    /* of the first output */
    double log2_reduced; /* terms of the longest reduction; 0: none */
    double reuse;        /* reads of elements / distinct elements read */
    bool broadcast;      /* some input has fewer elements than the output */
    size_t folds;        /* reductions in its statements */
    bool rereads;        /* outputs need elements beside a reduction of them */
    bool by_index;       /* data say which result a term of a reduction belongs to */
    bool special;        /* has functions, or divisions of reals */
};
void features_of(const struct inst *in, struct features *out);

#endif
