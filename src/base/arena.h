/* Arenas: one per lifetime (process, run, candidate, request), freed as a whole.
 *
 * An arena has a cap at birth. Running out of memory, or over the cap, is not something a caller
 * can do anything about here: runs resume by replay and every role is restarted by its parent, so
 * `arena_alloc` never returns NULL but ends the process with exit code 3 and one line on stderr.
 * What is sized by hostile input is therefore bounded before it reaches an arena (file_read, frames
 * and bufs have ceilings). */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/str.h"

struct arena;

struct arena *arena_new(size_t cap);
void arena_free(struct arena *a);  /* NULL is fine */
void arena_reset(struct arena *a); /* gives up all allocations, keeps the first block */
size_t arena_used(const struct arena *a);

void *arena_alloc(struct arena *a, size_t size, size_t align); /* zeroed */
str arena_str(struct arena *a, str s);                         /* copy, NUL-terminated after n */
char *arena_cstr(struct arena *a, str s);
str arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define arena_new_of(a, T)       ((T *)arena_alloc((a), sizeof(T), _Alignof(T)))
#define arena_array(a, T, count) ((T *)arena_array_bytes((a), (count), sizeof(T), _Alignof(T)))
void *arena_array_bytes(struct arena *a, size_t count, size_t size, size_t align);

/* The same rule for the few things that live on the heap (handles, growing arrays). */
void *mem_alloc(size_t size);                                   /* zeroed, never NULL */
void *mem_grow(void *p, size_t *cap, size_t need, size_t size); /* doubles; elements of `size` */
void *mem_resize(void *p, size_t size);                         /* what is added is not zeroed */
void mem_free(void *p);
/* For what is allowed to fail, arrays as large as a task asks for: NULL when there is no memory,
 * and p stays as it was. */
void *mem_try_resize(void *p, size_t size);
/* From here on the process keeps what it frees for its own use, arrays of up to 32 MB included: for
 * one that makes such arrays again and again, and would pay for fresh pages each time. */
void mem_keep_freed(void);
/* The end of the process described above, for libraries that report it to us. */
_Noreturn void mem_exhausted(void);

#endif
