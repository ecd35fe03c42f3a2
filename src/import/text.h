/* Expressions of the task language as text, with just the brackets they need, and sizes as
 * products.
 *
 * A `struct ex` is a text and how tightly its outermost operator binds. A reduction stands between
 * sums and products: `sum(k) a[k]*b[k] + c` needs no brackets, `(sum(k) a[k])*c` does. */
#ifndef IMPORT_TEXT_H
#define IMPORT_TEXT_H

#include "base/arena.h"

enum level {
    LEVEL_ANYTHING,
    LEVEL_OR,
    LEVEL_AND,
    LEVEL_COMPARISON,
    LEVEL_SUM,
    LEVEL_REDUCTION,
    LEVEL_PRODUCT,
    LEVEL_PREFIX,
    LEVEL_PRIMARY,
};

struct ex {
    str text;
    enum level level;
};

struct ex ex_of(str text); /* a name, a number or a call */
struct ex ex_number(struct arena *a, double v);
struct ex ex_integer(struct arena *a, int64_t v);
bool ex_is(struct ex e, const char *text);
bool ex_to_integer(struct ex e, int64_t *out);                   /* a whole number, written out */
str ex_at_least(struct arena *a, struct ex e, enum level least); /* in brackets where it must be */

struct ex ex_add(struct arena *a, struct ex x, struct ex y);
struct ex ex_sub(struct arena *a, struct ex x, struct ex y);
struct ex ex_mul(struct arena *a, struct ex x, struct ex y);
struct ex ex_floordiv(struct arena *a, struct ex x, struct ex y);
struct ex ex_mod(struct arena *a, struct ex x, struct ex y);
struct ex ex_and(struct arena *a, struct ex x, struct ex y);
struct ex ex_if(struct arena *a, struct ex condition, struct ex yes, struct ex no);

/* A size as a product of a number and names, some of them divided by: what tells whether two sizes
 * are equal and what one is over another. Sums stay whole, as one factor. */
enum { MONOMIAL_FACTORS = 16 };
struct monomial {
    int64_t number, below; /* number/below, cancelled; below 0 is 1 */
    struct factor {
        str name;
        int power;
    } factors[MONOMIAL_FACTORS];
    size_t n;
};
struct monomial monomial_of(str size);
bool monomial_is_one(struct monomial x);
bool monomial_equal(struct monomial x, struct monomial y);
/* x/y where it is whole for certain: no name is left below the line. */
bool monomial_over(struct monomial x, struct monomial y, struct monomial *out);
struct monomial monomial_times(struct monomial x, struct monomial y);
str monomial_text(struct arena *a, struct monomial x);

/* Does a text have this name in it, as a word? */
bool text_mentions(str text, str name);

/* A size from a text of the helper, as an expression. */
struct ex ex_size(str text);

#endif
