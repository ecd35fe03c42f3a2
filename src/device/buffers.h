/* Memory that the judge made, as the simulator's device process sees it: each buffer comes once as
 * a descriptor, is mapped, and stays until the judge drops it. The mappings are owned here; the
 * descriptors belong to the frame that brought them. Nothing is made or resized here. */
#ifndef DEVICE_BUFFERS_H
#define DEVICE_BUFFERS_H

#include "base/frame.h"

enum { BUFFERS_MAX = 1024 };

struct buffer {
    int64_t id; /* the judge's */
    char *map;
    size_t size;
};

struct buffers {
    struct buffer list[BUFFERS_MAX];
    size_t n;
};

/* A WIRE_BUFFERS message: what is new, what goes, or everything goes first. */
bool buffers_take(struct buffers *b, const struct frame *f, struct err *err);
const struct buffer *buffers_find(const struct buffers *b, int64_t id); /* NULL: none */

#endif
