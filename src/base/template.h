/* Text templates, for kernels and prompts alike.
 *
 *     ${name}                  the slot's text; `$${` stands for a literal `${`. A slot alone on a
 *                              line whose text has several lines keeps the line's indentation on
 *                              each of them.
 *     //% if name              the lines up to `//% else` or `//% end` are there where the slot is
 *     //% if not name          not empty, or where it is
 *     //% else
 *     //% each list            the lines up to `//% end` come once for each row of the list, with
 *     //% end                  the row's slots, and those around it where the row has none
 *     //% library              says something to who reads templates; leaves no line
 *
 * A slot that the template asks for and nobody gave, and one that it never mentions, are errors,
 * with the template's line. */
#ifndef BASE_TEMPLATE_H
#define BASE_TEMPLATE_H

#include "base/arena.h"
#include "base/err.h"

struct slots;
struct slot {
    const char *name;
    str text;
    struct slots *const *rows; /* of a list; otherwise NULL */
    size_t nrows;
};

bool template_render(str name, str text, const struct slot *slots, size_t n, struct buf *out,
                     struct err *err);
bool template_mentions(str text, const char *name);

/* A set of slots; a copy is a set of its own. */
enum { SLOTS_MOST = 96 };
struct slots {
    struct arena *mem;
    struct slot at[SLOTS_MOST];
    size_t n;
};
void slots_init(struct slots *s, struct arena *mem);
/* A slot of that name is replaced. */
void slots_put(struct slots *s, const char *name, str text);
void slots_number(struct slots *s, const char *name, int64_t v);
void slots_flag(struct slots *s, const char *name, bool is_set);
/* A further row of a list, empty. */
struct slots *slots_row(struct slots *s, const char *list);
/* A list without rows, unless it has some. */
void slots_list(struct slots *s, const char *list);
bool slots_has_rows(const struct slots *s, const char *list);
/* The text of a slot, which must be there. */
str slots_get(const struct slots *s, const char *name);

#endif
