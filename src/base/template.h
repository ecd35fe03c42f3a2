/* Text templates: slots only, for kernels and prompts alike. `${name}` is replaced by the slot's
 * text; `$${` stands for a literal `${`. A slot alone on a line whose text has several lines keeps
 * the line's indentation on each of them. An unknown slot in the template and a slot that the
 * template never uses are both errors, with the template's line. */
#ifndef BASE_TEMPLATE_H
#define BASE_TEMPLATE_H

#include "base/err.h"

struct slot {
    const char *name;
    str text;
};

bool template_render(str name, str text, const struct slot *slots, size_t n, struct buf *out,
                     struct err *err);

#endif
