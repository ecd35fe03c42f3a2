#include "agent/llm/memory.h"

#include <string.h>

#define MEMORY_MAX ((size_t)1 << 30)

void memory_init(struct memory *m) {
    *m = (struct memory){.texts = arena_new(MEMORY_MAX)};
}

void memory_release(struct memory *m) {
    arena_free(m->texts);
    mem_free(m->entries);
}

struct memory_entry *memory_find(const struct memory *m, digest strategy) {
    for (size_t i = 0; i < m->n; i++)
        if (memcmp(&m->entries[i].strategy, &strategy, sizeof strategy) == 0)
            return &m->entries[i];
    return NULL;
}

struct memory_entry *memory_of_source(const struct memory *m, str source_hash) {
    for (size_t i = m->n; i > 0; i--)
        if (str_is(source_hash, m->entries[i - 1].source_hash))
            return &m->entries[i - 1];
    return NULL;
}

struct memory_entry *memory_of(struct memory *m, digest strategy) {
    struct memory_entry *e = memory_find(m, strategy);
    if (e)
        return e;
    m->entries = mem_grow(m->entries, &m->cap, m->n + 1, sizeof *m->entries);
    e = &m->entries[m->n++];
    *e = (struct memory_entry){.strategy = strategy};
    return e;
}

void memory_set_note(struct memory *m, digest strategy, str note) {
    memory_of(m, strategy)->note = arena_str(m->texts, note);
}

void memory_set_source(struct memory *m, digest strategy, str source) {
    struct memory_entry *e = memory_of(m, strategy);
    e->source = arena_str(m->texts, source);
    digest_hex(sha256_of(source), e->source_hash);
}
