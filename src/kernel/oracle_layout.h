/* What the host and the oracle's kernels hand each other: one text for both compilers
 * (spec/shared.h). Addresses are the device's. Everything here is plain data of eight-byte members,
 * so that both lay it out alike; the unit asserts the sizes that C sees. */
#ifndef KERNEL_ORACLE_LAYOUT_H
#define KERNEL_ORACLE_LAYOUT_H

#include "spec/chain.h"
#include "spec/compare_value.h"
#include "spec/source_value.h"

#ifdef __CUDACC__
#define ADDRESS(T) T *
#else
#define ADDRESS(T) uint64_t
#endif

#define ORACLE_AXES    8
#define ORACLE_REGIONS 64
#define ORACLE_BLOCK   128 /* threads */
#define ORACLE_LEVELS  8   /* of chains, where a thread makes several results */

struct oracle_tensor {
    ADDRESS(void) at; /* 0: it has no memory */
    int64_t count;
    int64_t extent[ORACLE_AXES], stride[ORACLE_AXES];
    int64_t type, item; /* enum dtype; bytes an element */
    int64_t whole;      /* integers, from lo to hi */
    int64_t poisoned;   /* an output that is no input */
    double lo, hi;
    ADDRESS(double) expected; /* of an output: value and estimate by turns; 0: to be evaluated */
};

/* Intermediate values, each with its variance: a let, or a reduction over the indices it depends
 * on. Without memory (value 0) they are evaluated where they are read. */
struct oracle_array {
    ADDRESS(double) value;
    ADDRESS(double) variance;
    ADDRESS(double) best; /* argmax of uncertain terms: the best one's values, then variances */
    int64_t count;
    int64_t lo[ORACLE_AXES], n[ORACLE_AXES], stride[ORACLE_AXES];
    /* Of a reduction by index (spec/pattern.h): the numbers of its terms, sorted by the result that
     * they belong to; where those of each result begin; not 0 where the errors of what says so
     * allow another result, and all results go through all terms. start 0: there are no lists. */
    ADDRESS(const uint32_t) order;
    ADDRESS(const uint32_t) start;
    ADDRESS(const int64_t) doubt;
    int64_t terms; /* of each list's item */
};

/* Sorting the terms of a reduction by index, seven bits of their results' numbers at a time. */
struct oracle_sort {
    ADDRESS(const uint32_t) keys;
    ADDRESS(const uint32_t) order;
    ADDRESS(uint32_t) keys_to;
    ADDRESS(uint32_t) order_to;
    ADDRESS(uint32_t) digits; /* by value, then tile */
    ADDRESS(uint32_t) totals; /* by value */
    ADDRESS(uint32_t) start;
    int64_t count, tiles, shift, lists;
};

/* A case: sizes, places and what its data are made from. */
struct oracle_world {
    ADDRESS(const int64_t) dim;
    ADDRESS(const struct oracle_tensor) tensor;
    ADDRESS(const struct source) source; /* by tensor, as is promise */
    ADDRESS(const struct promise) promise;
    ADDRESS(const struct oracle_array) array;
    ADDRESS(int64_t) odd; /* tensors, then arrays: not 0 where something in it is not finite */
};

/* One element of an output. */
struct oracle_mismatch {
    int64_t index; /* -1: nothing is wrong with it */
    double expected, got, estimate;
};

/* Which results a thread makes where it makes several (oracle_plan.h): rows so far apart, and
 * columns. The 32 threads of a warp take lane_rows * lane_columns neighbours. */
struct oracle_tile {
    int64_t row_step, column_step;
    int64_t lane_rows, lane_columns;
};

/* The one parameter of all kernels that work on a case. Elements are cut into as many pieces of
 * consecutive ones as the grid has blocks along x; blocks along y are the task's tensors. */
struct oracle_op {
    ADDRESS(const struct oracle_world) world;
    uint64_t select;         /* tensors: a bit each */
    uint64_t key;            /* of poison */
    int64_t first, count;    /* elements */
    int64_t segments, terms; /* of a reduction: threads for each result, terms for each thread */
    struct oracle_tile tile;
    ADDRESS(void) out; /* records */
    ADDRESS(struct oracle_mismatch) more;
};

/* What a segment of terms came to: whole chains, combined. */
struct oracle_part {
    double sum, variance;
    double before, bias; /* sum of the chains; of all partial sums */
    double lost, count, doubt, doubts, at;
    struct alike alike;
    int64_t seen;
};

struct oracle_join {
    ADDRESS(const struct oracle_part) part;
    int64_t segments;
    struct oracle_array array;
    struct fold how;
    ADDRESS(int64_t) odd;
};

/* What one block saw of one tensor: how many, and the lowest. */
struct oracle_found {
    int64_t count, first;
};

/* Of the comparison of an output. */
struct oracle_tally {
    struct oracle_found unwritten; /* still poison */
    struct oracle_found untrue;    /* truth values that are neither 0 nor 1 */
    struct oracle_found bad;       /* wrong or not finite */
    struct compared all;
};

/* Bytes around tensors that no kernel may change. */
struct oracle_region {
    ADDRESS(void) at;
    int64_t bytes;
    uint64_t key;
};
struct oracle_regions {
    ADDRESS(struct oracle_found) out; /* a record for each region and block */
    struct oracle_region region[ORACLE_REGIONS];
};

#endif
