/* Expressions as trees: equality, search, and the value of an integer expression. */
#ifndef SPEC_EXPR_H
#define SPEC_EXPR_H

#include "spec/task.h"

/* Structural equality. */
bool expr_same(const struct expr *a, const struct expr *b);
/* The same rank, and the same extents. */
bool extents_same(const struct tensor *a, const struct tensor *b);
/* The first part, in reading order, of that kind; NULL: none. */
const struct expr *expr_find(const struct expr *e, enum expr_kind kind);
bool expr_has(const struct expr *e, enum expr_kind kind);
bool expr_reads(const struct expr *e);                /* an element of a tensor */
bool expr_is_number(const struct expr *e, int64_t v); /* written as this integer */

/* The value in checked 64-bit integers, truth as 1 and 0; division rounds down. `vars` are the
 * values of EXPR_INDEX, NULL: there are none. `&&`, `||` and `if` leave out what they need not
 * know. False: `where` is the part that has no value, and `why` says it. */
struct expr_fault {
    const struct expr *where;
    const char *why;
};
bool expr_eval_integer(const struct expr *e, const int64_t *dims, const int64_t *vars, int64_t *out,
                       struct expr_fault *fault);

#endif
