/* Sets of index points, counted exactly: where a statement, a term of a reduction or a read
 * happens. Private to the room; costs are made from it.
 *
 * A domain is a box of variables and constraints on them: affine inequalities (ranges that depend
 * on other variables, guards, padding), divisibility (strides), and tests that have neither form.
 * Counting splits the variables into groups that no constraint connects, multiplies their counts,
 * and counts a group by running over the variables that hold it together; the last of a chain is an
 * interval. So a strided convolution costs a loop over one spatial dimension, not over all.
 *
 * Loops draw on a budget. When it is spent, or a constraint has no room, counts are those of the
 * enclosing box: an upper bound, never an endless loop. */
#ifndef SPEC_DOMAIN_H
#define SPEC_DOMAIN_H

#include "spec/bounds.h"

enum { DOMAIN_CONSTRAINTS = 48, DOMAIN_KNOWN = 8 };

/* c + Σ coef·variable */
struct affine {
    int64_t c;
    int64_t coef[TASK_MAX_VARS];
    uint32_t vars; /* whose coefficient is not 0 */
};
bool affine_of(const struct inst *in, const struct expr *e, struct affine *out);

enum constraint_kind {
    CONSTRAINT_NOT_NEGATIVE, /* affine >= 0 */
    CONSTRAINT_DIVISIBLE,    /* affine % modulus == 0 */
    CONSTRAINT_TEST,         /* lo <= test + affine <= hi */
};
struct constraint {
    enum constraint_kind kind;
    uint32_t vars;
    struct affine a;
    int64_t modulus, lo, hi;
    const struct expr *test;
};

struct domain {
    const struct inst *in;
    int64_t *budget; /* steps of loops left to whoever counts */
    uint32_t present;
    bool empty;
    struct range var[TASK_MAX_VARS];
    struct constraint c[DOMAIN_CONSTRAINTS];
    size_t n;
    /* Counts made before, by the variables asked for. */
    struct {
        uint32_t vars;
        double count;
    } known[DOMAIN_KNOWN];
    size_t nknown;
};

/* The elements a statement defines. Heap memory: mem_free. */
struct domain *domain_new(const struct inst *in, const struct statement *s, int64_t *budget);
struct domain *domain_copy(const struct domain *d);

/* Each narrows the domain. Conditions that depend on data are left out, but for one that an index
 * equals a number from the data: it stands at its first value, for whichever it is. */
void domain_enter(struct domain *d, const struct reduce *r);
void domain_require(struct domain *d, const struct expr *e, bool truth);
void domain_require_inside(struct domain *d, const struct expr *read); /* all its indices */
/* Where `condition`, stated over the indices of the tensor of `read`, is `truth` at the place that
 * is read; as far as the condition is affine. */
void domain_require_at(struct domain *d, const struct expr *read, const struct expr *condition,
                       bool truth);

/* The shadow of the domain on `vars`: what values they take, whatever the others are. */
void domain_keep(struct domain *d, uint32_t vars);
/* How many different values the variables `vars` take together. */
double domain_count(struct domain *d, uint32_t vars);
/* The variables that constraints connect with `vars`, these included. */
uint32_t domain_connected(const struct domain *d, uint32_t vars);

/* Runs over all values of `vars`, innermost as the interval [lo, hi] of variable `inner` (a single
 * value where it is not the whole interval). False: the budget does not allow it, or f stopped. */
typedef bool domain_visit(void *ctx, const int64_t *value, size_t inner, struct range r);
bool domain_each(const struct domain *d, uint32_t vars, domain_visit *f, void *ctx);

#endif
