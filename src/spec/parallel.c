/* Threads that live for one call. */
#include "spec/parallel.h"

#include <pthread.h>
#include <stdbool.h>

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
