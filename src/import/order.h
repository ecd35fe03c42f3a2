/* The order of an imported module, as CHAIN_FILE of its folder says it: which tasks there are and
 * how often each is run. */
#ifndef IMPORT_ORDER_H
#define IMPORT_ORDER_H

#include "import/chain.h"

struct order_task {
    str name; /* of its file, without the suffix */
    size_t uses;
    double runs; /* with every step of those that repeat, at the module's own sizes */
};

struct order {
    str module;
    struct order_task *tasks;
    size_t ntasks, uses;
    double runs;
};

bool order_exists(const char *folder);
/* In the arena. False and err (ERR_INPUT): it is none. */
bool order_read(const char *folder, struct arena *a, struct order *out, struct err *err);
const struct order_task *order_find(const struct order *o, str task); /* NULL: not one of it */

#endif
