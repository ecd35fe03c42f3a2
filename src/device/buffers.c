/* The list is short and ids are few, so it is searched from the front. */
#include "device/buffers.h"

#include "device/wire.h"

#include <sys/mman.h>
#include <sys/stat.h>

const struct buffer *buffers_find(const struct buffers *b, int64_t id) {
    for (size_t i = 0; i < b->n; i++)
        if (b->list[i].id == id)
            return &b->list[i];
    return NULL;
}

static void drop(struct buffers *b, int64_t id) {
    const struct buffer *gone = buffers_find(b, id);
    if (!gone)
        return;
    munmap(gone->map, gone->size);
    b->list[gone - b->list] = b->list[b->n - 1];
    b->n--;
}

static bool add(struct buffers *b, int64_t id, int fd, struct err *err) {
    struct stat st;
    drop(b, id);
    if (b->n == BUFFERS_MAX || fstat(fd, &st) < 0)
        return err_set(err, ERR_ENV, "bad message: buffer");
    size_t size = (size_t)st.st_size;
    char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return err_errno(err, ERR_ENV, "map %zu bytes of a case", size);
    b->list[b->n++] = (struct buffer){id, map, size};
    return true;
}

bool buffers_take(struct buffers *b, const struct frame *f, struct err *err) {
    struct arena *a = arena_new(16u << 20);
    struct wire_buffers m;
    bool ok = wire_read(&wire_buffers_fields, f->head, a, &m, err) &&
              (m.nbuffers == f->nfds || err_set(err, ERR_ENV, "bad message: buffers"));
    while (ok && m.reset && b->n)
        drop(b, b->list[0].id);
    for (size_t i = 0; ok && i < m.ndrop; i++)
        drop(b, m.drop[i]);
    for (size_t i = 0; ok && i < m.nbuffers; i++)
        ok = add(b, m.buffers[i].id, f->fds[i], err);
    arena_free(a);
    return ok;
}
