/* Files of assets/, embedded at build, overridable by a folder (--assets DIR). */
#ifndef BASE_ASSET_H
#define BASE_ASSET_H

#include "base/arena.h"
#include "base/err.h"

struct asset {
    const char *name; /* path below assets/ */
    const char *data;
    size_t size;
};
extern const struct asset asset_table[]; /* generated; sorted; ends with name == NULL */

/* dir may be NULL. With a dir, a file there wins over the embedded one. */
bool asset_get(const char *dir, const char *name, struct arena *a, str *out, struct err *err);

#endif
