/* Numbers of an instance that other files of the room need, and the oracle. */
#ifndef SPEC_BIND_H
#define SPEC_BIND_H

#include "spec/task.h"

/* A real expression over dimensions alone. False: its value is not finite. */
bool expr_eval_real(const struct expr *e, const int64_t *dims, double *out);
/* The numbers of a tensor's distribution; unused ones are 0. Checked by task_bind. */
void dist_numbers(const struct inst *in, size_t tensor, double *a, double *b);
/* What an integer type holds. */
void dtype_limits(enum dtype t, double *lo, double *hi);

#endif
