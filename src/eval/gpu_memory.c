#include "eval/gpu_memory.h"

#include "device/role.h"

#include <poll.h>
#include <unistd.h>

#define SPARE_BYTES (64u << 20) /* larger ones do not wait */
#define LET_GO_MS   5
#define LET_GO_MOST 100 /* times that, for the device to let go of memory */

static void release(struct gpu_memory *m, struct shared *s) {
    m->dropped = mem_grow(m->dropped, &m->room_dropped, m->ndropped + 1, sizeof *m->dropped);
    m->dropped[m->ndropped++] = s->id;
    vmm_release(m->cuda, &s->memory);
}

void shared_free(struct gpu_memory *m, struct shared *s) {
    if (s->memory.address && m->nspare < SPARE_MOST && s->memory.mapped <= SPARE_BYTES)
        m->spare[m->nspare++] = *s;
    else if (s->memory.address)
        release(m, s);
    *s = (struct shared){0};
}

/* One that waits, of the size that `bytes` would be given. */
static bool take_spare(struct gpu_memory *m, size_t bytes, struct shared *out) {
    for (size_t i = 0; i < m->nspare; i++) {
        size_t mapped = m->spare[i].memory.mapped;
        if (mapped < bytes || mapped - bytes >= m->granule)
            continue;
        *out = m->spare[i];
        m->spare[i] = m->spare[--m->nspare];
        return true;
    }
    return false;
}

static bool give_up_something(struct gpu_memory *m) {
    if (!m->nspare)
        return m->make_room(m->ctx);
    while (m->nspare)
        release(m, &m->spare[--m->nspare]);
    return true;
}

bool gpu_memory_make_room(struct gpu_memory *m) {
    size_t before = cuda_free_bytes(m->cuda);
    struct sending s;
    struct err ignored = {0};
    if (!give_up_something(m))
        return false;
    if (!m->ndropped)
        return true; /* what was given up waits for another case, and goes next */
    sending_start(&s, m);
    sending_end(&s, true, &ignored); /* a device that is gone holds nothing */
    for (int i = 0; i < LET_GO_MOST && cuda_free_bytes(m->cuda) <= before; i++)
        poll(NULL, 0, LET_GO_MS);
    return true;
}

static bool create(struct gpu_memory *m, size_t bytes, struct shared *out, bool *full,
                   struct err *err) {
    *out = (struct shared){.id = ++m->next_id};
    *full = bytes > m->cuda->facts.memory_bytes;
    if (*full)
        return err_set(err, ERR_ENV, "%zu bytes are more than the GPU has", bytes);
    while (!vmm_create(m->cuda, bytes, &out->memory, full, err)) {
        if (!*full || !gpu_memory_make_room(m))
            return false;
        *err = (struct err){0};
    }
    return true;
}

bool shared_make(struct gpu_memory *m, size_t bytes, uint32_t align, bool odd, struct shared *out,
                 bool *full, struct err *err) {
    size_t most = bytes + 2 * (size_t)PLAN_MAX_ALIGN; /* room for canaries on both sides */
    *full = false;
    if (!take_spare(m, most, out) && !create(m, most, out, full, err)) {
        *out = (struct shared){0};
        return false;
    }
    out->bytes = bytes;
    out->offset = (out->memory.mapped - bytes) / align * align;
    if (odd && out->offset % (2 * align) == 0)
        out->offset -= align;
    return true;
}

uint64_t shared_content(const struct shared *s) {
    return s->memory.address + s->offset;
}

struct wire_span shared_span(const struct shared *s) {
    return (struct wire_span){.buffer = s->id, .offset = s->offset, .bytes = s->bytes};
}

size_t shared_regions(const struct shared *s, uint64_t key, struct oracle_region out[SIDES]) {
    size_t end = s->offset + s->bytes;
    out[0] = (struct oracle_region){s->memory.address, (int64_t)s->offset, key};
    out[1] =
        (struct oracle_region){s->memory.address + end, (int64_t)(s->memory.mapped - end), key + 1};
    return SIDES;
}

/* ---- telling the device ---- */

void sending_start(struct sending *s, struct gpu_memory *m) {
    *s = (struct sending){.m = m};
}

static void sending_clear(struct sending *s) {
    for (size_t i = 0; i < s->n; i++)
        close(s->fds[i]);
    s->n = 0;
}

static bool send_now(struct sending *s, struct err *err) {
    struct gpu_memory *m = s->m;
    struct wire_buffers said = {.reset = !m->reset_sent, /* nothing is left of a judge before */
                                .buffers = s->buffers,
                                .nbuffers = s->n,
                                .drop = m->dropped,
                                .ndrop = m->ndropped};
    json *head = fields_to_json(&wire_buffers_fields, &said);
    bool ok = frame_write(ROLE_FD, WIRE_BUFFERS, head, (str){0}, s->fds, s->n, err);
    json_free(head);
    m->reset_sent = true;
    m->ndropped = 0;
    sending_clear(s);
    return ok;
}

bool sending_add(struct sending *s, struct shared *b, struct err *err) {
    if (!b->memory.address || b->sent == s->m->device)
        return true;
    if ((s->n == FRAME_MAX_FDS && !send_now(s, err)) ||
        !vmm_export(s->m->cuda, &b->memory, &s->fds[s->n], err))
        return false;
    s->buffers[s->n++] = (struct wire_buffer){b->id, b->memory.mapped};
    b->sent = s->m->device;
    return true;
}

bool sending_end(struct sending *s, bool ok, struct err *err) {
    if (ok && (s->n || s->m->ndropped))
        ok = send_now(s, err);
    sending_clear(s);
    return ok;
}
