/* How the elements of an input or a parameter are distributed, from the operators that made it:
 * rand() is uniform(0, 1), rand()*2 - 1 is uniform(-1, 1), zeros() is zeros. */
#ifndef IMPORT_DIST_H
#define IMPORT_DIST_H

#include "import/write.h"

/* "uniform(-1/sqrt(C), 1/sqrt(C))", in the arena; false: it is no distribution of the language, but
 * perhaps an expression over such. */
bool dist_of(struct writer *w, struct ref r, str *out);
/* Random numbers as they are drawn, by one of the operators of kind OP_RANDOM. */
bool dist_drawn(struct writer *w, const struct node *n, str *out);

#endif
