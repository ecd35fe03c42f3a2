/* What a scan combines: an associative operator on a small state.
 *
 * Every element of the axis is lifted to a state, states are combined in the order of the scan, and
 * a result is read off the state of all elements up to it:
 *
 *   fold          sum, product, maximum, minimum: the state is the value
 *   best          arg-maximum, arg-minimum: the best value and its place, of equals the smallest
 *   decay         h[t] = a[t]*h[t-1] + u[t]: the product of a, and h begun at 0
 *   exponentials  sum(k <= j) w[k]*exp(x[k] - m[j]): the largest x, and the sum of w*exp(x -
 * largest) segments      a fold that starts anew at some elements: whether one did, and the value
 * since
 *
 * The order counts for decay and segments: a kernel must not combine elements that are not
 * neighbours. */
#ifndef AGENT_EXPERT_SCAN_OPERATOR_H
#define AGENT_EXPERT_SCAN_OPERATOR_H

#include "agent/expert/sheet/pieces.h"
#include "spec/pattern.h"

enum scan_kind { SCAN_FOLD, SCAN_BEST, SCAN_DECAY, SCAN_EXPONENTIALS, SCAN_SEGMENTS };

struct scan_shape {
    const struct statement *fold; /* whose value is the result */
    const struct statement
        *most; /* exponentials: the running maximum that is its `shift`, or NULL */
    enum scan_kind kind;
    size_t axis;             /* the index variable along which is scanned */
    bool reverse, exclusive; /* from the end; without the element itself */
    /* With the reduced variable replaced by the axis: */
    struct expr *term;    /* what is folded, u, or w; NULL: 1 */
    struct expr *guard;   /* NULL: all terms */
    struct expr *decay;   /* a, or its logarithm */
    struct expr *power;   /* x */
    struct expr *shift;   /* -m, at the result's own element; NULL: less the largest x */
    struct expr *restart; /* a segment begins here */
    struct recurrence steps;
};

/* Of statement `first` in a form, and with the statement of its `most`. `trusted`: statements
 * elsewhere, of tensors that it reads, are known to fit. */
bool scan_recognise(const struct inst *in, const struct statement *s, bool trusted, struct arena *a,
                    struct scan_shape *out);
/* The scan of a step. */
bool scan_find(const struct inst *in, struct arena *a, struct scan_shape *out);
bool scan_is_ordered(const struct scan_shape *shape);

/* The state: its type, and what it is made of. Products run in double: what a part of a row
 * multiplies to may leave fp32's range where no result does. */
struct scan_state {
    bool tuple;         /* a struct, not a number */
    const char *value;  /* the type of a result */
    const char *number; /* of what is folded, or compared */
    int64_t bytes;
    int64_t words; /* of 32 bits, with which chunks look back; 0: they do not */
    struct {
        const char *type, *name;
    } field[2];
};
struct scan_state scan_state_of(const struct scan_shape *shape);

#endif
