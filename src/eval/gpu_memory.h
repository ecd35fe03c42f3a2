/* Memory that judge and device share: a buffer for each tensor and workspace, its content at the
 * end, so that an access behind it faults, and canaries in the rest.
 *
 *     [ canary … | content | canary, less than the alignment ] nothing mapped
 *
 * Making a buffer and telling another process of it takes as long as judging many cases, so buffers
 * that a case has left wait for another. Private to the judge. */
#ifndef EVAL_GPU_MEMORY_H
#define EVAL_GPU_MEMORY_H

#include "device/vmm.h"
#include "device/wire.h"
#include "eval/oracle_run.h"

struct shared {
    struct vmm_buffer memory;
    size_t offset, bytes; /* of the content */
    int64_t id, sent;     /* sent: to which device process; 0: none */
};

#define SPARE_MOST 1024

struct gpu_memory {
    const struct cuda *cuda;
    size_t granule; /* of mapped memory */
    struct shared spare[SPARE_MOST];
    size_t nspare;
    int64_t next_id;
    int64_t *dropped; /* ids the device has not been told of */
    size_t ndropped, room_dropped;
    bool reset_sent;
    int64_t device; /* the process that buffers are sent to */
    /* Asked when the GPU is full: gives something up, or false. */
    bool (*make_room)(void *ctx);
    void *ctx;
};

/* Gives something up and waits until the device has let go of it as well, which is when its memory
 * is free. False: there is nothing left to give up. */
bool gpu_memory_make_room(struct gpu_memory *m);

/* Fails with *full set where the GPU does not have that much. `odd`: at an odd multiple of the
 * alignment, so that nothing can rely on more. */
bool shared_make(struct gpu_memory *m, size_t bytes, uint32_t align, bool odd, struct shared *out,
                 bool *full, struct err *err);
void shared_free(struct gpu_memory *m, struct shared *s);
uint64_t shared_content(const struct shared *s);
struct wire_span shared_span(const struct shared *s);

/* What must not change around a content: before it, and behind it. */
enum { SIDES = 2 };
size_t shared_regions(const struct shared *s, uint64_t key, struct oracle_region out[SIDES]);

/* Telling a device process of buffers it has not got yet. */
struct sending {
    struct gpu_memory *m;
    struct wire_buffer buffers[FRAME_MAX_FDS];
    int fds[FRAME_MAX_FDS];
    size_t n;
};
void sending_start(struct sending *s, struct gpu_memory *m); /* to m->device */
bool sending_add(struct sending *s, struct shared *b, struct err *err);
bool sending_end(struct sending *s, bool ok, struct err *err); /* ok false: nothing is sent */

#endif
