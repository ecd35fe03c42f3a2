/* Outputs that take no computing must not pass: a constant (zero is one), or the mean of an input.
 *
 * Which constants would pass is known exactly: each judged element allows an interval around its
 * value, and only what lies in all of them, on every kind of data and at every shape, passes. So no
 * list of likely constants is tried, and one evaluation of the reference mostly settles a task. */
#ifndef SPEC_TRIVIAL_H
#define SPEC_TRIVIAL_H

#include "spec/task.h"

/* Every such output must fail on some kind of data at one of the small `check` shapes or, where
 * those do not tell, at the instance cut to a small size. The message names the output and what
 * would pass. Takes some milliseconds. */
bool task_check_trivial(const struct inst *in, unsigned threads, struct err *err);

#endif
