/* Folding blocks of lanes by the rules of chain.h. Private to the room.
 *
 * A `row` folds the terms of one result one after the other; `columns` fold a term each into the
 * results of all lanes. */
#ifndef SPEC_FOLD_H
#define SPEC_FOLD_H

#include "spec/chain.h"
#include "spec/program.h"

struct row {
    const struct fold *f;
    struct chain c;
    struct chains before;
    struct level level[CHAIN_LEVELS];
    double peak; /* the largest partial result of any order of the terms, where it is tracked */
};

void row_start(struct row *r, const struct fold *f);
/* Lane l of a block of terms; guard: NULL, or says which count; at: its place, for argmax. */
void row_add(struct row *r, const struct reg *term, const struct reg *guard, size_t l, double at);
/* Lanes [0, n) in order. */
void row_add_all(struct row *r, const struct reg *term, const struct reg *guard, size_t n,
                 double at);
/* The result of the terms so far. */
struct value row_result(const struct row *r);

/* The members of struct chain and struct chains, of all lanes. */
struct columns {
    const struct fold *f;
    double sum[LANES + LANES_PAD], variance[LANES + LANES_PAD];
    double partial_sq[LANES + LANES_PAD], partial_sum[LANES + LANES_PAD];
    double term_sq[LANES + LANES_PAD];
    double last[LANES + LANES_PAD], run[LANES + LANES_PAD], lost[LANES + LANES_PAD];
    double counted[LANES]; /* of `count`, before the chain */
    size_t length;
    struct {
        double sum[LANES + LANES_PAD], variance[LANES + LANES_PAD];
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
/* So many terms of all lanes have been summed by other means: into sum, partial_sq, term_sq and,
 * where accumulators truncate, partial_sum; no more than the chain has room for. */
void columns_added(struct columns *c, size_t terms, size_t n);
/* Combines what there is. True: every lane is ordinary; otherwise the same terms, settled, must
 * all be shown to columns_look before the results are taken. */
bool columns_close(struct columns *c, size_t n);
void columns_look(struct columns *c, const struct reg *term, const struct reg *guard, size_t n);
void columns_result(struct columns *c, double *v, double *e, size_t n);

#endif
