/* A task as mathematics: its statements as MathML, which browsers set. Subscripts for indices,
 * fractions for division, sums and maxima with their ranges below them, cases for conditions.
 * Private to the room. */
#ifndef REPORT_MATHML_H
#define REPORT_MATHML_H

#include "spec/task.h"

/* <math> of one statement, with `=` and what it is equal to. */
void mathml_statement(const struct task *t, const struct statement *s, struct buf *out);
/* <math> of the ranges of its index variables, such as 0 ≤ i < R; nothing where it has none. */
void mathml_ranges(const struct task *t, const struct statement *s, struct buf *out);
/* <math> of a tensor's name with its extents, such as x ∈ f32^(R×C). */
void mathml_tensor(const struct task *t, size_t tensor, struct buf *out);

#endif
