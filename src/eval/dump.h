/* What a candidate computed, as files for another judge: FOLDER/NNN/ for each case, with every
 * input and output as NAME.npy (of what is written in place, the result as NAME.out.npy) and
 * case.json, which says shape, kind of data and seed. Private. */
#ifndef EVAL_DUMP_H
#define EVAL_DUMP_H

#include "base/frame.h"
#include "eval/trials.h"

/* f: a WIRE_DUMPED. */
bool dump_write(const char *folder, const struct trials *t, const struct frame *f, struct err *err);

#endif
