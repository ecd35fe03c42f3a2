#include "agent/llm/notebook.h"

#include <string.h>

#define NOTEBOOK_MAX ((size_t)1 << 30)

void notebook_init(struct notebook *m) {
    *m = (struct notebook){.texts = arena_new(NOTEBOOK_MAX)};
}

void notebook_release(struct notebook *m) {
    arena_free(m->texts);
    mem_free(m->entries);
    mem_free(m->pairs);
}

struct notebook_entry *notebook_find(const struct notebook *m, digest strategy) {
    for (size_t i = 0; i < m->n; i++)
        if (memcmp(&m->entries[i].strategy, &strategy, sizeof strategy) == 0)
            return &m->entries[i];
    return NULL;
}

struct notebook_entry *notebook_of_source(const struct notebook *m, str source_hash) {
    for (size_t i = m->n; i > 0; i--)
        if (str_is(source_hash, m->entries[i - 1].source_hash))
            return &m->entries[i - 1];
    return NULL;
}

struct notebook_entry *notebook_of(struct notebook *m, digest strategy) {
    struct notebook_entry *e = notebook_find(m, strategy);
    if (e)
        return e;
    m->entries = mem_grow(m->entries, &m->cap, m->n + 1, sizeof *m->entries);
    e = &m->entries[m->n++];
    *e = (struct notebook_entry){.strategy = strategy};
    return e;
}

void notebook_set_source(struct notebook *m, digest strategy, str source) {
    struct notebook_entry *e = notebook_of(m, strategy);
    e->source = arena_str(m->texts, source);
    digest_hex(sha256_of(source), e->source_hash);
}

void notebook_add_pair(struct notebook *m, digest child, const struct notebook_parent *x,
                       const struct notebook_parent *y) {
    m->pairs = mem_grow(m->pairs, &m->cap_pairs, m->npairs + 1, sizeof *m->pairs);
    m->pairs[m->npairs++] = (struct notebook_pair){.child = child, .parents = {*x, *y}};
}

const struct notebook_parent *notebook_take_pair(struct notebook *m, digest child) {
    struct notebook_pair *oldest = NULL;
    for (size_t i = m->npairs; i > 0; i--) {
        struct notebook_pair *p = &m->pairs[i - 1];
        if (p->used)
            continue;
        oldest = p;
        if (memcmp(&p->child, &child, sizeof child) == 0)
            break;
    }
    if (!oldest)
        return NULL;
    oldest->used = true;
    return oldest->parents;
}
