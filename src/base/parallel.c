/* Threads that live for one call, and how many processors there are for them. */
#include "base/parallel.h"
#include "base/file.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

unsigned cores_of_quota(str text) {
    uint64_t quota, period;
    str rest = str_trim(text), word;
    if (!str_word(&rest, ' ', &word) || !str_to_u64(word, &quota) ||
        !str_to_u64(str_trim(rest), &period) || !quota || !period || quota > UINT32_MAX)
        return 0;
    return (unsigned)((quota + period - 1) / period);
}

/* The least quota of the group that the process is in and of those above it; 0: none has one. */
static unsigned quota_below(str group, struct arena *a) {
    unsigned least = 0;
    for (;;) {
        struct err none;
        str text;
        const char *path = arena_printf(a, "/sys/fs/cgroup%.*s/cpu.max", STR_ARG(group)).p;
        bool read = file_exists(path) && file_read(path, 4096, a, &text, &none);
        unsigned n = read ? cores_of_quota(text) : 0;
        least = n && (!least || n < least) ? n : least;
        if (!group.n)
            return least;
        while (group.n && group.p[group.n - 1] != '/')
            group.n--;
        group.n -= group.n > 0;
    }
}

static unsigned quota_here(void) {
    struct arena *a = arena_new(1u << 20);
    struct err none;
    str text = {0}, line, group = {0};
    if (file_read("/proc/self/cgroup", 1u << 16, a, &text, &none))
        while (str_line(&text, &line))
            if (str_starts(line, S("0::/")))
                group = str_from(line, 3);
    unsigned n = quota_below(group.n > 1 ? group : S(""), a);
    arena_free(a);
    return n;
}

unsigned cores_usable(void) {
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = online > 0 ? (unsigned)online : 1, quota = quota_here();
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        n = (unsigned)CPU_COUNT(&set);
    return quota && quota < n ? quota : n;
}

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
