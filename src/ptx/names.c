/* See names.h. A chained hash table whose newest entries come first, so that ending a scope is
 * popping the list. */
#include "ptx/names.h"

#define NAMES_BUCKETS 1024u

static uint32_t bucket_of(str s) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 16777619u;
    return (h ^ h >> 15) % NAMES_BUCKETS;
}

void names_init(struct names *t) {
    *t = (struct names){.table = mem_alloc(NAMES_BUCKETS * sizeof *t->table)};
}

void names_release(struct names *t) {
    mem_free(t->list);
    mem_free(t->table);
    *t = (struct names){0};
}

void names_add(struct names *t, struct name n) {
    t->list = mem_grow(t->list, &t->cap, t->n + 1, sizeof *t->list);
    uint32_t *head = &t->table[bucket_of(n.text)];
    n.below = *head;
    t->list[t->n++] = n;
    *head = (uint32_t)t->n;
}

void names_drop(struct names *t, size_t n) {
    while (t->n > n) {
        const struct name *last = &t->list[--t->n];
        t->table[bucket_of(last->text)] = last->below;
    }
}

static const struct name *find(const struct names *t, str text, bool family) {
    for (uint32_t i = t->table[bucket_of(text)]; i; i = t->list[i - 1].below)
        if ((t->list[i - 1].count > 0) == family && str_eq(t->list[i - 1].text, text))
            return &t->list[i - 1];
    return NULL;
}

bool names_find(const struct names *t, str text, uint32_t *reg) {
    const struct name *n = find(t, text, false);
    if (n) {
        *reg = n->first;
        return true;
    }
    size_t stem = text.n;
    while (stem > 0 && text.p[stem - 1] >= '0' && text.p[stem - 1] <= '9')
        stem--;
    uint64_t index;
    str number = str_from(text, stem);
    if (!number.n || (number.n > 1 && number.p[0] == '0') || !str_to_u64(number, &index))
        return false;
    n = find(t, str_cut(text, 0, stem), true);
    if (!n || index >= n->count)
        return false;
    *reg = n->first + (uint32_t)index;
    return true;
}
