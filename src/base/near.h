/* The known name that is most like one that is not known, for "did you mean". */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include "base/str.h"

struct near {
    str unknown, best; /* best: empty where none is near */
    size_t least;      /* edits; a name that takes as many is no help */
};

struct near near_begin(str unknown);
void near_try(struct near *n, str known);

#endif
