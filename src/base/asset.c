/* Names are paths below assets/, never ways out of it. */
#include "base/asset.h"

#include "base/file.h"

#include <string.h>

enum { ASSET_BYTES_MAX = 16 << 20 };

static const struct asset *asset_find(const char *name) {
    size_t low = 0, high = 0;
    while (asset_table[high].name)
        high++;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, asset_table[middle].name);
        if (order == 0)
            return &asset_table[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static bool name_is_inside(const char *name) {
    str rest = str_view(name), part;
    if (rest.n == 0 || name[0] == '/')
        return false;
    while (str_word(&rest, '/', &part)) {
        if (str_is(part, ".."))
            return false;
    }
    return true;
}

bool asset_get(const char *dir, const char *name, struct arena *a, str *out, struct err *err) {
    if (!name_is_inside(name))
        return err_set(err, ERR_INPUT, "asset '%s': the name must be a path below assets/", name);
    if (dir) {
        str path = arena_printf(a, "%s/%s", dir, name);
        if (file_exists(path.p))
            return file_read(path.p, ASSET_BYTES_MAX, a, out, err) || err_wrap(err, "asset");
    }
    const struct asset *found = asset_find(name);
    if (!found && dir)
        return err_set(err, ERR_INPUT, "asset '%s': neither in %s nor built in", name, dir);
    if (!found)
        return err_set(err, ERR_INPUT, "asset '%s': not built in", name);
    *out = (str){found->data, found->size};
    return true;
}
