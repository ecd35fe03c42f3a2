/* What became of a candidate: one list. A verdict is data and always becomes a row. */
#ifndef KERNEL_VERDICT_H
#define KERNEL_VERDICT_H

#include "base/str.h"

enum verdict {
#define VERDICT(id, name, what) VERDICT_##id,
#include "kernel/verdict.def"
#undef VERDICT
    VERDICT_COUNT
};
const char *verdict_name(enum verdict v);
const char *verdict_meaning(enum verdict v);
bool verdict_find(str name, enum verdict *out);

#endif
