/* Terms folded into one result, with the error of an honest evaluation order. Private to the room.
 *
 * The order is blocked: chains of at most CHAIN terms, and their results added in pairs. Along a
 * chain every partial sum s is rounded, each rounding costing u²·s². Two orders count: the one the
 * terms came in, whose partial sums were there to see, and a random one, where the expected squares
 * follow from the sum S and the sum of squares W of n terms: n·(S²/3 + W/6). A kernel may meet a
 * large term early that we met late. On signed data both stay small.
 * Roundings are independent, but for equal terms in a row, which round the same way again and
 * again: these add up before they are squared. A term of 0 costs nothing.
 *
 * Sums of products in a tensor-core class add the rounding of their operands to each term, and a
 * bias for an accumulator that truncates: proportional to the sum of all partial sums, which has
 * the sign of what it takes away from.
 *
 * A `row` folds terms of one result one after the other; `columns` fold a term each into the
 * results of all lanes. Both follow the same rules. The fp64 value itself is summed in the same
 * order, so its own error is far below any estimate. */
#ifndef SPEC_FOLD_H
#define SPEC_FOLD_H

#include "spec/program.h"

#include <float.h>
#include <math.h>

enum { CHAIN = 1024, CHAIN_LEVELS = 48 };

struct fold {
    enum reduction op;
    bool exact;    /* the terms' own variances are 0 */
    bool masked;   /* some terms may be left out */
    bool product;  /* a sum of products */
    bool unjudged; /* nothing can be said about a result, unless a NaN is among its terms */
    bool track_peak;
    double relative2; /* variance of a term, in units of its square, beside its own */
    double unit2, least2, truncation, worst;
    double most; /* the largest magnitude that counts */
};

/* What was seen among the terms. */
enum {
    SEEN_NAN = 1,       /* that was put in */
    SEEN_UNDEFINED = 2, /* a variance without end */
    SEEN_INFINITE = 4,
    SEEN_OVERFLOW = 8, /* a partial result beyond `most` */
};

struct row {
    const struct fold *f;
    /* The chain: sum, variance of the terms, squares of partial sums (equal terms together), sum of
     * partial sums, squares of terms. */
    double s, e, q, a, w;
    double last, run; /* the last term; partial sums since it first came */
    double lost;      /* terms too small for their sum */
    size_t length;
    double base_s, base_e; /* the chains before */
    struct {
        double s, e;
    } level[CHAIN_LEVELS];
    uint64_t full;       /* levels in use; number of chains before */
    double before, bias; /* sum of the chains before; of all partial sums */
    double count;
    double doubt, doubts; /* variance of, and number of, terms that may or may not be selected */
    double at;            /* argmax: where */
    double peak; /* the largest partial result of any order of the terms, where it is tracked */
    unsigned seen;
};

void row_start(struct row *r, const struct fold *f);
/* Lane l of a block of terms; guard: NULL, or says which count; at: its place, for argmax. */
void row_add(struct row *r, const struct reg *term, const struct reg *guard, size_t l, double at);
/* Lanes [0, n) in order. */
void row_add_all(struct row *r, const struct reg *term, const struct reg *guard, size_t n,
                 double at);
/* The result of the terms so far. */
void row_result(const struct row *r, double *v, double *e);

struct columns {
    const struct fold *f;
    double s[LANES + LANES_PAD], e[LANES + LANES_PAD], q[LANES + LANES_PAD], a[LANES + LANES_PAD],
        w[LANES + LANES_PAD];
    double last[LANES + LANES_PAD], run[LANES + LANES_PAD], lost[LANES + LANES_PAD];
    double counted[LANES]; /* of `count`, before the chain */
    size_t length;
    struct {
        double s[LANES + LANES_PAD], e[LANES + LANES_PAD];
    } level[CHAIN_LEVELS];
    uint64_t full;
    double before[LANES + LANES_PAD], bias[LANES + LANES_PAD];
    double total; /* terms, where none is left out */
    double count[LANES + LANES_PAD], doubt[LANES + LANES_PAD], doubts[LANES + LANES_PAD],
        at[LANES + LANES_PAD];
    unsigned char odd[LANES]; /* needs another look: columns_look */
    unsigned char seen[LANES];
    double peak[LANES + LANES_PAD];
};

void columns_start(struct columns *c, const struct fold *f);
void columns_add(struct columns *c, const struct reg *term, const struct reg *guard, size_t n,
                 double at);
/* The term is x·y, either of which may be the same in all lanes (its lane 0 counts). */
void columns_add_product(struct columns *c, const struct reg *x, bool x_lone, const struct reg *y,
                         bool y_lone, size_t n);
/* So many terms of all lanes have been summed by other means: into s, q, w and, where accumulators
 * truncate, a; no more than the chain has room for. */
void columns_added(struct columns *c, size_t terms, size_t n);
/* Combines what there is. True: every lane is ordinary; otherwise the same terms, settled, must
 * all be shown to columns_look before the results are taken. */
bool columns_close(struct columns *c, size_t n);
void columns_look(struct columns *c, const struct reg *term, const struct reg *guard, size_t n);
void columns_result(struct columns *c, double *v, double *e, size_t n);

/* A term v that makes the sum s: it is lost, or it rounds like the term before it. */
static inline bool fold_loses(double v, double s) {
    return (v < 0 ? -v : v) <= 0x1p-22 * (s < 0 ? -s : s);
}
static inline bool fold_repeats(double v, double last, double s) {
    double d = v - last;
    return (d < 0 ? -d : d) <= 0x1p-24 * (s < 0 ? -s : s);
}

/* What both are made of. The variance of a chain's own additions. */
double fold_chain(const struct fold *f, double n, double s, double q, double w);
double fold_lost(const struct fold *f, double lost);
bool fold_is_extreme(enum reduction op);
double fold_first(const struct fold *f);
/* A term that may be the largest as well as the one that was chosen. */
bool fold_ties(const struct fold *f, double best, double best_e, double v, double e);
/* The better of (s, e) and a term becomes (s, e). True: the term is. */
bool fold_extreme(const struct fold *f, double *s, double *e, double v, double ev, bool doubtful);
/* SEEN_… of a term; 0 when it is ordinary. */
static inline unsigned fold_see(const struct fold *f, double v, double e) {
    if (fabs(v) <= f->most && e <= DBL_MAX)
        return 0;
    if (isinf(e))
        return SEEN_UNDEFINED;
    return isnan(v) ? SEEN_NAN : isinf(v) ? SEEN_INFINITE : SEEN_OVERFLOW;
}
/* The same of a term with a guard, which says whether it is in. Where that is doubtful, a NaN or an
 * infinity shows in one kernel and not in another. */
static inline unsigned fold_see_guarded(const struct fold *f, double v, double e, bool in,
                                        bool doubtful) {
    if (doubtful && !isfinite(v))
        return SEEN_UNDEFINED;
    return in ? fold_see(f, v, e) : 0;
}
void fold_finish(const struct fold *f, double count, double doubts, double at, unsigned seen,
                 double *v, double *e);

#endif
