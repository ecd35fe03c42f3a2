/* Which headers a unit may include: a list, checked on the text before anything is compiled. The
 * sandbox of the compiler is the second line: there only the header roots can be opened at all. */
#ifndef KERNEL_INCLUDES_H
#define KERNEL_INCLUDES_H

#include "base/arena.h"

struct includes {
    bool cute;       /* some header of CUTLASS is wanted */
    bool allowed;    /* all of them are */
    str refused;     /* otherwise: the operand, as written */
    const char *why; /* and what is wrong with it */
};
void includes_scan(str unit, struct arena *a, struct includes *out);

/* Is `name` (without < > or quotes) on the list? */
bool include_allowed(str name);
/* For people: the list. */
extern const char includes_list[];

/* The file that a compiler's log says it could not open; false: none. */
bool includes_unopened(str log, str *name);

#endif
