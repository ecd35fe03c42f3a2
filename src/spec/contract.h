/* Sums of products of two inputs, straight from memory: matrix products and their like, whose terms
 * are by far the most that a reference has. Private to the room.
 *
 * Where the lanes of a reduction in columns run along one factor, element by element, and the other
 * is the same in all of them, the innermost loop needs no program: both tensors are converted to
 * fp64 once, and a run of terms is added with the sums in registers. Terms, their order and every
 * operation are those of the general way (fold.c), and so are the bits of the results. */
#ifndef SPEC_CONTRACT_H
#define SPEC_CONTRACT_H

#include "spec/nest.h"

/* A run of terms, one for each lane: x[t·x_step] · y[t·y_step + lane]. Lanes are taken in groups: y
 * can be read that far past its end. */
enum { PRODUCTS_GROUP = 8 };
struct products {
    const double *x, *y;
    int64_t x_step, y_step;
    size_t terms;
};

/* Both tensors as doubles, on the heap. NULL: the general way. */
struct contraction {
    double *x, *y;
};

/* Says of a nest that is about to be scheduled along variable `lane` whether this way is open. */
void contract_find(struct nest *n, int lane);
/* Makes nothing where the way is closed, where there are more elements to convert than terms to
 * add, or where there is no memory. */
void contract_init(struct contraction *c, const struct nest *n, const struct content *contents);
void contract_release(struct contraction *c);
/* The first `terms` of the innermost loop from the point `at` on. False: some lie outside of a
 * tensor (program.h, invariant 3). */
bool contract_at(const struct contraction *c, const struct nest *n, const struct content *contents,
                 const int64_t *at, int64_t terms, size_t lanes, struct products *out);

/* products.c: columns_add_product and columns_look of every term. */
void products_add(struct columns *c, const struct products *p, size_t n);
void products_look(struct columns *c, const struct products *p, size_t n);
/* How far partial sums may come in some order of the terms, and into peak[lane] how large their
 * factors are; all of them are finite. */
void products_reach(struct columns *c, const struct products *p, size_t n, double *peak);

#endif
