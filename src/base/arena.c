/* The one file that calls the C library's allocator, and so the one seam for its faults.
 *
 * An arena is a list of zeroed blocks, newest first; allocations are cut from the newest. The bytes
 * of a block past `used` are always zero, which is what lets arena_alloc promise zeroed memory
 * without touching it: large arrays come straight from the kernel, page by page, when first used.
 * The cap counts bytes cut, padding included, not blocks. */
#include "base/arena.h"

#include "base/checked.h"
#include "base/err.h"
#include "base/fault.h"

#include <limits.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#define BLOCK_FIRST ((size_t)4096)
#define BLOCK_MOST  ((size_t)1 << 20)

struct block {
    struct block *older;
    size_t size, used;
    alignas(max_align_t) char data[];
};

struct arena {
    struct block *newest;
    size_t used, cap;
};

static _Noreturn void give_up(const char *why, size_t bytes) {
    char line[160];
    int n =
        bytes ? snprintf(line, sizeof line, "cutepilot: out of memory: %s %zu bytes\n", why, bytes)
              : snprintf(line, sizeof line, "cutepilot: out of memory: %s\n", why);
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)n);
    (void)ignored;
    _exit(ERR_ENV);
}

_Noreturn void mem_exhausted(void) {
    give_up("a library could not allocate", 0);
}

void *mem_alloc(size_t size) {
    void *p = fault_hit(FAULT_ALLOC) ? NULL : calloc(1, size ? size : 1);
    if (!p)
        give_up("could not allocate", size);
    return p;
}

void *mem_try_resize(void *p, size_t size) {
    return fault_hit(FAULT_ALLOC) ? NULL : realloc(p, size ? size : 1);
}

void *mem_resize(void *p, size_t size) {
    void *resized = mem_try_resize(p, size);
    if (!resized)
        give_up("could not allocate", size);
    return resized;
}

void *mem_grow(void *p, size_t *cap, size_t need, size_t size) {
    if (need <= *cap)
        return p;
    size_t count = *cap > SIZE_MAX / 2 ? need : *cap * 2;
    size_t bytes;
    count = count < 8 ? 8 : count;
    count = count < need ? need : count;
    if (!mul_size(count, size, &bytes))
        give_up("an array is over the largest size of", SIZE_MAX);
    char *grown = mem_resize(p, bytes);
    memset(grown + *cap * size, 0, (count - *cap) * size);
    *cap = count;
    return grown;
}

void mem_keep_freed(void) {
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* the most there is */
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

void mem_free(void *p) {
    free(p);
}

struct arena *arena_new(size_t cap) {
    struct arena *a = mem_alloc(sizeof *a);
    a->cap = cap;
    return a;
}

static void blocks_free(struct block *b) {
    while (b) {
        struct block *older = b->older;
        mem_free(b);
        b = older;
    }
}

void arena_free(struct arena *a) {
    if (!a)
        return;
    blocks_free(a->newest);
    mem_free(a);
}

void arena_reset(struct arena *a) {
    struct block *first = a->newest;
    while (first && first->older) {
        struct block *older = first->older;
        mem_free(first);
        first = older;
    }
    if (first) {
        memset(first->data, 0, first->used);
        first->used = 0;
    }
    a->newest = first;
    a->used = 0;
}

size_t arena_used(const struct arena *a) {
    return a->used;
}

/* Blocks double up to a megabyte; what is larger gets a block of its own size. */
static void block_add(struct arena *a, size_t need) {
    size_t size = a->newest ? a->newest->size * 2 : BLOCK_FIRST;
    size = size > BLOCK_MOST ? BLOCK_MOST : size;
    size = size < need ? need : size;
    size_t bytes;
    if (!add_size(size, sizeof(struct block), &bytes))
        give_up("a block is over the largest size of", SIZE_MAX);
    struct block *b = mem_alloc(bytes);
    b->older = a->newest;
    b->size = size;
    a->newest = b;
}

static size_t padding(const struct block *b, size_t align) {
    uintptr_t at = (uintptr_t)(b->data + b->used);
    return (size_t)(-at & (align - 1));
}

void *arena_alloc(struct arena *a, size_t size, size_t align) {
    BUG_IF(align == 0 || (align & (align - 1)));
    size_t worst;
    if (!add_size(size, align - 1, &worst) || worst > a->cap || a->used > a->cap - worst)
        give_up("an arena is over its cap of", a->cap);
    struct block *b = a->newest;
    if (!b || b->size - b->used < size || b->size - b->used - size < padding(b, align)) {
        block_add(a, worst);
        b = a->newest;
    }
    size_t pad = padding(b, align);
    void *p = b->data + b->used + pad;
    b->used += pad + size;
    a->used += pad + size;
    return p;
}

void *arena_array_bytes(struct arena *a, size_t count, size_t size, size_t align) {
    size_t bytes;
    if (!mul_size(count, size, &bytes))
        give_up("an arena is over its cap of", a->cap);
    return arena_alloc(a, bytes, align);
}

char *arena_cstr(struct arena *a, str s) {
    char *p = arena_alloc(a, s.n + 1, 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    return p;
}

str arena_str(struct arena *a, str s) {
    return (str){arena_cstr(a, s), s.n};
}

str arena_printf(struct arena *a, const char *fmt, ...) {
    va_list ap, again;
    BUG_IF(!fmt);
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    BUG_IF(n < 0);
    char *p = arena_alloc(a, (size_t)n + 1, 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    return (str){p, (size_t)n};
}
