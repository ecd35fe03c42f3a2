/* Threads that live for one call. */
#include "base/parallel.h"

#include <pthread.h>
#include <string.h>

struct piece {
    parallel_fn *fn;
    void *ctx;
    unsigned part;
    int64_t first, last;
    pthread_t thread;
    bool started;
};

static void *piece_run(void *arg) {
    struct piece *p = arg;
    p->fn(p->ctx, p->part, p->first, p->last);
    return NULL;
}

unsigned parallel_for(unsigned threads, int64_t items, parallel_fn *fn, void *ctx) {
    struct piece pieces[PARALLEL_MOST];
    unsigned n = threads < 1 ? 1 : threads > PARALLEL_MOST ? PARALLEL_MOST : threads;
    if ((int64_t)n > items)
        n = items > 0 ? (unsigned)items : 1;
    for (unsigned i = 0; i < n; i++) {
        int64_t each = items / n, rest = items % n;
        int64_t first = each * i + (i < rest ? i : rest);
        pieces[i] = (struct piece){.fn = fn, .ctx = ctx, .part = i, .first = first};
        pieces[i].last = first + each + (i < rest);
    }
    for (unsigned i = 1; i < n; i++)
        pieces[i].started = pthread_create(&pieces[i].thread, NULL, piece_run, &pieces[i]) == 0;
    for (unsigned i = 0; i < n; i++)
        if (!pieces[i].started)
            piece_run(&pieces[i]);
    for (unsigned i = 1; i < n; i++)
        if (pieces[i].started)
            pthread_join(pieces[i].thread, NULL);
    return n;
}

/* ---- memory ---- */

enum { BLOCK = 1 << 18 };

struct pair {
    char *dst;
    const char *a, *b;
    size_t bytes;
    bool differs[PARALLEL_MOST];
};

static int64_t blocks_of(size_t bytes) {
    return (int64_t)((bytes + BLOCK - 1) / BLOCK);
}

/* Bytes of blocks [first, last). */
static size_t span_of(const struct pair *p, int64_t first, int64_t last) {
    size_t from = (size_t)first * BLOCK, to = (size_t)last * BLOCK;
    return (to < p->bytes ? to : p->bytes) - from;
}

static void copy_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    const struct pair *p = ctx;
    size_t from = (size_t)first * BLOCK;
    (void)part;
    memcpy(p->dst + from, p->a + from, span_of(p, first, last));
}

void parallel_copy(unsigned threads, void *dst, const void *src, size_t bytes) {
    struct pair p = {.dst = dst, .a = src, .bytes = bytes};
    if (bytes)
        parallel_for(threads, blocks_of(bytes), copy_piece, &p);
}

static void compare_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    struct pair *p = ctx;
    size_t from = (size_t)first * BLOCK;
    p->differs[part] = memcmp(p->a + from, p->b + from, span_of(p, first, last)) != 0;
}

bool parallel_equal(unsigned threads, const void *a, const void *b, size_t bytes) {
    struct pair p = {.a = a, .b = b, .bytes = bytes};
    bool equal = true;
    unsigned parts = bytes ? parallel_for(threads, blocks_of(bytes), compare_piece, &p) : 0;
    for (unsigned i = 0; i < parts; i++)
        equal &= !p.differs[i];
    return equal;
}
