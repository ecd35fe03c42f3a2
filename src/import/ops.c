#include "import/ops.h"

#include "import/ops_private.h"

#include <string.h>

static const struct op table[] = {
#define POINT(name, repeats, text)        {name, OP_POINT, repeats, text, NULL},
#define OP(name, kind, repeats, function) {name, kind, repeats, NULL, function},
#include "import/ops.def"
#undef POINT
#undef OP
};

size_t op_count(void) {
    return sizeof table / sizeof *table;
}

const struct op *op_at(size_t i) {
    return &table[i];
}

const struct op *op_find(str name) {
    for (size_t i = 0; i < op_count(); i++)
        if (str_is(name, table[i].name))
            return &table[i];
    return NULL;
}
