/* See names.h. A chained hash table whose newest entries come first, so that ending a scope is
 * popping the list, and what was declared later is further inside. */
#include "ptx/names.h"

#define NAMES_BUCKETS 1024u
#define FAMILY_AFTER  1024u /* names of the same scope */

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

static const struct name *find(const struct names *t, size_t scope, str text, bool family,
                               uint64_t member) {
    for (uint32_t i = t->table[bucket_of(text)]; i > scope; i = t->list[i - 1].below) {
        const struct name *n = &t->list[i - 1];
        if ((n->count > 0) == family && str_eq(n->text, text) && (!family || member < n->count))
            return n;
    }
    return NULL;
}

/* `%r12` as the family %r and 12. A compiler writes no leading zeros; ptxas reads them. */
static bool member_of(str text, str *family, uint64_t *member) {
    size_t stem = text.n;
    while (stem > 0 && text.p[stem - 1] >= '0' && text.p[stem - 1] <= '9')
        stem--;
    *family = str_cut(text, 0, stem);
    return stem < text.n && str_to_u64(str_from(text, stem), member);
}

static const struct name *find_any(const struct names *t, size_t scope, str text, uint32_t *index) {
    const struct name *n = find(t, scope, text, false, 0), *f = NULL;
    str family;
    uint64_t member = 0;
    if (member_of(text, &family, &member))
        f = find(t, scope, family, true, member);
    if (f && (!n || f > n)) { /* declared later: in an inner scope */
        *index = f->index + (uint32_t)member;
        return f;
    }
    if (n)
        *index = n->index;
    return n;
}

/* A family may not have a member that the scope has already as a name of its own. Compilers declare
 * families first; one that comes after many names is refused rather than compared with all of them.
 */
static bool is_taken(const struct names *t, size_t scope, const struct name *n) {
    uint32_t index;
    if (!n->count)
        return find_any(t, scope, n->text, &index) != NULL;
    if (t->n - scope > FAMILY_AFTER)
        return true;
    for (size_t i = scope; i < t->n; i++) {
        const struct name *old = &t->list[i];
        str family;
        uint64_t member;
        if (old->count > 0 ? str_eq(old->text, n->text)
                           : member_of(old->text, &family, &member) && str_eq(family, n->text) &&
                                 member < n->count)
            return true;
    }
    return false;
}

bool names_add(struct names *t, size_t scope, struct name n) {
    if (is_taken(t, scope, &n))
        return false;
    t->list = mem_grow(t->list, &t->cap, t->n + 1, sizeof *t->list);
    uint32_t *head = &t->table[bucket_of(n.text)];
    n.below = *head;
    t->list[t->n++] = n;
    *head = (uint32_t)t->n;
    return true;
}

void names_drop(struct names *t, size_t n) {
    while (t->n > n) {
        const struct name *last = &t->list[--t->n];
        t->table[bucket_of(last->text)] = last->below;
    }
}

const struct name *names_find(const struct names *t, str text, uint32_t *index) {
    return find_any(t, 0, text, index);
}

const struct name *names_find_label(const struct names *t, size_t scope, str text) {
    const struct name *n = find(t, scope, text, false, 0);
    return n && n->kind == PTX_SYM_LABEL ? n : NULL;
}
