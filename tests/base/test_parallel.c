/* Ranges split over threads cover everything once, and memory is copied and compared whole. */
#include "base/arena.h"
#include "base/parallel.h"

#include "tap.h"

#include <sched.h>
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

/* One processor is one, however many the machine has; a quota is rounded up. */
static void processors(void) {
    cpu_set_t all, one;
    unsigned before = cores_usable();
    CHECK(before >= 1 && sched_getaffinity(0, sizeof all, &all) == 0);
    CHECK(before <= (unsigned)CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0 && cores_usable() == 1);
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0 && cores_usable() == before);
    static const struct {
        const char *text;
        unsigned want;
    } rows[] = {{"max 100000\n", 0},     {"200000 100000\n", 2}, {"150000 100000\n", 2},
                {"1000 100000\n", 1},    {"0 100000\n", 0},      {"", 0},
                {"100000\n", 0},         {"100000 0\n", 0},      {"junk junk\n", 0},
                {"12800000 100000", 128}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECKF(cores_of_quota(str_view(rows[i].text)) == rows[i].want, "%s", rows[i].text);
}

static const struct tap_case cases[] = {
    {"processors that may be used", processors},
    {"every item once", every_item_once},
    {"memory is copied and compared whole", memory},
};
TAP_CASES(cases)
