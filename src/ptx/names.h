/* Names of a function's registers, in nested scopes `{ }`. `%r<151>` declares a family; a name of
 * an inner scope hides the outer one until its scope ends. */
#ifndef PTX_NAMES_H
#define PTX_NAMES_H

#include "ptx/ptx.h"

#define PTX_MAX_REGISTERS (1u << 20)
#define PTX_MAX_SCOPES    64

struct name {
    str text;
    uint32_t first, count; /* registers; count 0: the name itself, else name0 … name<count-1> */
    uint32_t below;        /* the name it hides or collides with in the table, +1; 0: none */
};

struct names {
    struct name *list;
    size_t n, cap;
    uint32_t *table; /* index + 1 of the newest name of each hash */
};

void names_init(struct names *t);
void names_release(struct names *t);
void names_add(struct names *t, struct name n);
void names_drop(struct names *t, size_t n); /* back to the first n: a scope ends */
bool names_find(const struct names *t, str text, uint32_t *reg);

#endif
