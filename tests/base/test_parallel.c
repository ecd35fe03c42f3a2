/* Ranges split over threads cover everything once, and memory is copied and compared whole. */
#include "base/arena.h"
#include "base/parallel.h"

#include "tap.h"

#include <string.h>

enum { ITEMS = 1000 };

static void count(void *ctx, unsigned part, int64_t first, int64_t last) {
    unsigned char *seen = ctx;
    (void)part;
    for (int64_t i = first; i < last; i++)
        seen[i]++;
}

static void every_item_once(void) {
    static const struct {
        unsigned threads;
        int64_t items;
        unsigned parts;
    } rows[] = {{1, 10, 1}, {0, 10, 1}, {2, 1, 1}, {2, 0, 1}, {3, ITEMS, 3}, {1000, ITEMS, 64}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        unsigned char seen[ITEMS] = {0};
        bool once = true;
        CHECK(parallel_for(rows[k].threads, rows[k].items, count, seen) == rows[k].parts);
        for (int64_t i = 0; i < ITEMS; i++)
            once &= seen[i] == (i < rows[k].items);
        CHECKF(once, "%u threads, %lld items", rows[k].threads, (long long)rows[k].items);
    }
}

static void memory(void) {
    static const size_t sizes[] = {0, 1, 4096, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 3000000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k];
        unsigned char *a = mem_alloc(n + 1), *b = mem_alloc(n + 1);
        for (size_t i = 0; i <= n; i++)
            a[i] = (unsigned char)(i * 7 + 1);
        parallel_copy(2, b, a, n);
        CHECKF(memcmp(a, b, n) == 0 && b[n] == 0, "%zu bytes", n);
        CHECK(parallel_equal(2, a, b, n));
        size_t places[] = {0, n / 2, n ? n - 1 : 0};
        for (size_t i = 0; i < 3 && n; i++) {
            b[places[i]] ^= 1;
            CHECKF(!parallel_equal(2, a, b, n), "byte %zu of %zu", places[i], n);
            b[places[i]] ^= 1;
        }
        mem_free(a);
        mem_free(b);
    }
}

static const struct tap_case cases[] = {
    {"every item once", every_item_once},
    {"memory is copied and compared whole", memory},
};
TAP_CASES(cases)
