/* The list is short and ids are few, so it is searched from the front. */
#include "device/buffers.h"

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
    const json *added = json_get(f->head, "buffers"), *dropped = json_get(f->head, "drop");
    bool reset = false;
    json_get_bool(f->head, "reset", &reset);
    while (reset && b->n)
        drop(b, b->list[0].id);
    for (size_t i = 0; i < json_len(dropped); i++) {
        int64_t id;
        if (json_to_i64(json_at(dropped, i), &id))
            drop(b, id);
    }
    if (json_len(added) != f->nfds)
        return err_set(err, ERR_ENV, "bad message: buffers");
    for (size_t i = 0; i < f->nfds; i++) {
        int64_t id;
        if (!json_get_i64(json_at(added, i), "id", &id) || !add(b, id, f->fds[i], err))
            return err->kind ? false : err_set(err, ERR_ENV, "bad message: buffer %zu", i);
    }
    return true;
}
