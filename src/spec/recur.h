/* Recurrences: lets that read themselves, or each other, at earlier steps along one axis (task.h,
 * docs/TASKS.md). Lets that stand in a circle are a recurrence where one of their indices orders
 * them: every read from one to another is at `t`, `t - 1`, `t - 2`, … of the reader's own `t` (or
 * all are at `t`, `t + 1`, …), and those at `t` are in no circle themselves. The other indices of
 * such a read are free: a step may read the whole of the step before it. */
#ifndef SPEC_RECUR_H
#define SPEC_RECUR_H

#include "spec/language.h"

/* Lets in a circle: with the `lets` and `of` given, the rest is found. */
struct circle {
    uint64_t lets;                                /* a bit each */
    const struct statement *of[TASK_MAX_TENSORS]; /* what defines each */
    int axis[TASK_MAX_TENSORS];                   /* the dimension of each that counts the steps */
    bool backwards;
    size_t order[TASK_MAX_TENSORS], n; /* in which a step makes them */
};
/* False: no axis orders them; the message says which read is in the way. */
bool recurrence_settle(struct parser *p, struct circle *c);
/* When extents are known: all lets of a recurrence have the same number of steps. */
bool recurrence_check_extents(struct parser *p);

/* The statement that defines a let of a recurrence; NULL: the tensor is none. */
const struct statement *recurrence_let(const struct task *t, size_t tensor);
/* How far before the step of the statement `s` the element lies that `read` names; at least 0, and
 * counted the other way where steps go backwards. False: the read is of no let of its recurrence.
 */
bool recurrence_lag(const struct task *t, const struct statement *s, const struct expr *read,
                    int64_t *lag);
/* … and it names the element of the reader's own line: all other indices are the statement's own,
 * and both lets have the same extents. */
bool recurrence_is_own_line(const struct task *t, const struct statement *s,
                            const struct expr *read);
/* How many statements from `first` on are of its recurrence. */
size_t recurrence_length(const struct task *t, size_t first);

#endif
