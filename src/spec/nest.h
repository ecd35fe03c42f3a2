/* The loops around a program: one tensor of results, each an expression or a reduction of one.
 * Private to the room.
 *
 * The axes are the variables that a result depends on. A plain expression is evaluated along one of
 * them, in lanes. A reduction is evaluated
 *   - in columns: lanes along an axis, a term for all of them at a time;
 *   - in rows: lanes along the innermost variable of the reduction, folded into one result;
 *   - as a scan, where a bound of its only variable is an axis that occurs nowhere else: one pass
 *     gives the results for all of that axis.
 * Of a reduction by index (pattern.h) a result meets the terms that may belong to it, and no
 * others: by_index.h. Which one, and along which variable, is decided by an estimate of what each
 * would cost. Bounds that vary over the lanes become a guard over the union of the ranges. */
#ifndef SPEC_NEST_H
#define SPEC_NEST_H

#include "spec/by_index.h"
#include "spec/chain.h"
#include "spec/program.h"
#include "spec/value.h"

/* How results of a statement are stored. */
struct finish {
    enum dtype dtype;
    bool typed_let, output;
    struct limits limits;
};

struct axis {
    size_t var;
    int64_t lo, n;
};

/* An integer expression over variables. vars 0: its value is a.c. */
struct bound {
    const struct expr *e;
    uint32_t vars;
    bool affine;
    struct affine a;
};

struct loop {
    size_t var;
    struct bound lo, hi;
};

/* Of a product that is summed: a tensor, and its element. */
struct factor {
    size_t content;
    struct affine place;
};

/* Where results go. */
struct target {
    double *value, *error;
    double *peak; /* of each element; NULL: only the largest of all is wanted, or none */
    struct affine place;
    const struct finish *finish; /* NULL: value and variance are stored as they are */
    /* Of argmax and argmin: bit (place·tie_words·64 + index - tie_lo) is set for an index that is
     * as good within the errors; NULL: the variance covers the distance to it. */
    uint64_t *ties;
    int64_t tie_lo;
    size_t tie_words;
};

enum nest_mode { NEST_POINTS, NEST_COLUMNS, NEST_ROWS, NEST_SCAN };

struct nest {
    const struct inst *in;
    const struct statement *s;
    const struct reduce *reduce; /* NULL: a plain expression */
    const struct expr *body;
    enum nest_mode mode;
    struct axis axes[TASK_MAX_VARS];
    size_t naxes;
    int lane_axis; /* POINTS, COLUMNS: which axis runs in lanes; SCAN: which is scanned; -1: none */
    int64_t chunk; /* lanes a block, at the most */
    struct loop loops[TASK_MAX_VARS]; /* outermost first; ROWS, SCAN: the last runs in lanes */
    size_t nloops;
    bool backwards; /* SCAN: the lower bound is the axis */
    bool listed;    /* COLUMNS, ROWS: a reduction by index, whose results have lists of terms */
    struct by_index by;
    struct program p;
    struct fold fold;
    bool partial;   /* a sum of products that leaves terms out */
    bool pads;      /* a term may be left out by a pad, and NaN or infinities have been met */
    bool contracts; /* sums products straight from memory; its factors: the one that is the same in
                       all lanes, the other */
    struct factor factor[2];
    struct target target;
};

/* axes: of the results. e: the statement's body, or one of its reductions. */
void nest_init(struct nest *n, const struct inst *in, const struct statement *s,
               const struct expr *e, const struct axis *axes, size_t naxes,
               const struct stage *stages, size_t nstages, bool track_peak);
/* The same results over parts of the axes of `whole`, with places as `in` and the stages have them.
 * Terms come in the same order, and in the same mode unless that were much slower, so that the bits
 * are the same. */
void nest_init_part(struct nest *n, const struct nest *whole, const struct inst *in,
                    const struct expr *e, const struct axis *axes, const struct stage *stages,
                    size_t nstages);
/* What all variables can be where a term counts. */
struct ranges nest_ranges(const struct nest *n);
/* How many points and terms it visits, at the most. */
double nest_points(const struct nest *n);
/* Before running, what the data have to say: where NaN or infinities meet a sum of products some of
 * whose terms are left out, kernels honestly differ, and its results are not judged. A NaN among
 * the terms that are not left out comes out by any way of computing. */
void nest_meet(struct nest *n, const struct content *contents);
void nest_release(struct nest *n);
/* False: no memory. *peak: the largest magnitude there was, when it is tracked. */
bool nest_run(const struct nest *n, const struct content *contents, unsigned threads, double *peak);

#endif
