/* The names that can be seen at a place of a PTX text, in nested scopes: the module, a function
 * with its parameters, and the blocks `{ }` in it. `%r<151>` declares a family of registers. A name
 * of an inner scope hides the outer one until its scope ends; in one scope a name is declared once.
 *
 * What ptxas 13.0 does was tried case by case; where it accepts what no compiler writes, the same
 * is done here or the text is refused, never something else. */
#ifndef PTX_NAMES_H
#define PTX_NAMES_H

#include "ptx/ptx.h"

#define PTX_MAX_REGISTERS (1u << 20)
#define PTX_MAX_SCOPES    64

struct name {
    str text;
    enum ptx_symbol kind;
    uint32_t index; /* in the list of its kind; of a family the first */
    uint32_t count; /* 0: the name itself, else a family of registers name0 … name<count-1> */
    uint32_t below; /* the name it hides or collides with in the table, +1; 0: none */
};

struct names {
    struct name *list;
    size_t n, cap;
    uint32_t *table; /* index + 1 of the newest name of each hash */
};

void names_init(struct names *t);
void names_release(struct names *t);
/* false: the scope that begins at `scope` has the name already. */
bool names_add(struct names *t, size_t scope, struct name n);
void names_drop(struct names *t, size_t n); /* back to the first n: a scope ends */

/* What the name stands for here, the innermost first; NULL: nothing. Of a family, *index is the
 * member's. */
const struct name *names_find(const struct names *t, str text, uint32_t *index);
/* The same among the names from `scope` on that are labels. */
const struct name *names_find_label(const struct names *t, size_t scope, str text);

#endif
