#include "base/arena.h"
#include "forked.h"
#include "tap.h"

#include <stdlib.h>

static bool all_zero(const char *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (p[i])
            return false;
    }
    return true;
}

static void zeroed_and_aligned(void) {
    struct arena *a = arena_new(64 << 20);
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t size = 0; size < 6000; size += 613) {
            char *p = arena_alloc(a, size, align);
            CHECKF((uintptr_t)p % align == 0 && all_zero(p, size), "%zu at %zu", size, align);
            memset(p, 0xff, size);
        }
    }
    char *big = arena_alloc(a, 8 << 20, 64);
    CHECK(all_zero(big, 8 << 20));
    arena_free(a);
    arena_free(NULL);
}

static void reset_forgets(void) {
    struct arena *a = arena_new(1 << 20);
    memset(arena_alloc(a, 3000, 8), 0xff, 3000);
    memset(arena_alloc(a, 30000, 8), 0xff, 30000);
    CHECK(arena_used(a) >= 33000);
    arena_reset(a);
    CHECK(arena_used(a) == 0);
    CHECK(all_zero(arena_alloc(a, 4000, 8), 4000));
    for (int i = 0; i < 1000; i++) { /* would pass the cap if reset kept counting */
        arena_reset(a);
        arena_alloc(a, 10000, 8);
    }
    arena_free(a);
}

static void texts(void) {
    struct arena *a = arena_new(1 << 20);
    str s = arena_str(a, S("ab\0c"));
    CHECK(s.n == 4 && s.p[4] == 0 && memcmp(s.p, "ab\0c", 4) == 0);
    CHECK(strcmp(arena_cstr(a, S("")), "") == 0);
    s = arena_printf(a, "%s-%d", "x", 17);
    CHECK(str_is(s, "x-17") && s.p[s.n] == 0);
    int *v = arena_array(a, int, 100);
    CHECK(v[99] == 0);
    arena_free(a);
}

static void growing(void) {
    size_t cap = 0;
    int *v = NULL;
    for (size_t i = 0; i < 1000; i++) {
        v = mem_grow(v, &cap, i + 1, sizeof *v);
        CHECKF(v[i] == 0, "%zu", i);
        v[i] = (int)i;
    }
    CHECK(cap >= 1000 && v[999] == 999 && v[0] == 0);
    mem_free(v);
    char *p = mem_alloc(0);
    CHECK(p != NULL);
    mem_free(p);
}

static int over_cap(void) {
    struct arena *a = arena_new(1000);
    arena_alloc(a, 900, 1);
    arena_alloc(a, 101, 1);
    return 0;
}
static int array_overflow(void) {
    arena_array_bytes(arena_new(SIZE_MAX), SIZE_MAX / 2, 3, 1);
    return 0;
}
static int size_overflow(void) {
    arena_alloc(arena_new(SIZE_MAX), SIZE_MAX - 2, 16);
    return 0;
}
static int grow_overflow(void) {
    size_t cap = 0;
    mem_grow(NULL, &cap, SIZE_MAX / 4, 8);
    return 0;
}
static int exact_cap(void) {
    struct arena *a = arena_new(1000);
    arena_alloc(a, 900, 1);
    arena_alloc(a, 100, 1);
    return 42;
}

static void limits_end_the_process(void) {
    static const struct {
        const char *name;
        int (*f)(void);
        int code;
    } rows[] = {
        {"over the cap", over_cap, 3},
        {"count * size overflows", array_overflow, 3},
        {"size + align overflows", size_overflow, 3},
        {"array overflows", grow_overflow, 3},
        {"just the cap", exact_cap, 42},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct forked r = forked_run(rows[i].f);
        bool said = strncmp(r.err, "cutepilot: out of memory", 24) == 0;
        CHECKF(r.code == rows[i].code && said == (rows[i].code == 3), "%s: %d, '%s'", rows[i].name,
               r.code, r.err);
    }
}

static const struct tap_case cases[] = {
    {"allocations are zeroed and aligned", zeroed_and_aligned},
    {"reset forgets and zeroes", reset_forgets},
    {"texts and arrays", texts},
    {"mem_grow doubles and zeroes", growing},
    {"over a limit the process ends with 3", limits_end_the_process},
};
TAP_CASES(cases)
