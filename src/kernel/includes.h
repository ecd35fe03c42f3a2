/* Which headers a unit may include: a list, checked on the text before anything is compiled. The
 * sandbox of the compiler is the second line: there only the header roots can be opened at all. */
#ifndef KERNEL_INCLUDES_H
#define KERNEL_INCLUDES_H

#include "base/arena.h"

struct includes {
    bool cute;       /* some header of CUTLASS is wanted */
    bool allowed;    /* all of them are */
    str refused;     /* otherwise: the operand of the first, as written */
    const char *why; /* and what is wrong with it */
    str others;      /* a line for each of the next few that are not allowed either */
    size_t nrefused;
    struct arena *mem; /* that this is in */
};
void includes_scan(str unit, struct arena *a, struct includes *out);

/* For people: the list. */
extern const char includes_list[];

/* For nvcc, which has no prelude: lines that a source may begin with, and that include what the
 * prelude stands for. They are no part of what is compiled here, so that the list above holds. */
extern const char includes_for_nvcc[];
/* The source without those lines. */
str includes_body(str source);
/* The source with them, once. */
str includes_file(str source, struct arena *a);

/* The file that a compiler's log says it could not open; false: none. */
bool includes_unopened(str log, str *name);

#endif
