/* The functions that ops.def names: one group a file. */
#ifndef IMPORT_OPS_PRIVATE_H
#define IMPORT_OPS_PRIVATE_H

#include "import/write.h"

#define POINT(name, repeats, text)
#define OP(name, kind, repeats, function)                                                          \
    struct ex function(struct writer *w, const struct node *n, size_t out, const struct place *at);
#include "import/ops.def"
#undef POINT
#undef OP

#endif
