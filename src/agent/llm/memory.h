/* What the agent remembers of the strategies it has met, by their hash: the sentence a strategist
 * added, the source that was written, the two sources that it is to be made of. Owns its texts.
 * Everything in it follows from requests and replies, so a replayed run remembers the same. */
#ifndef AGENT_LLM_MEMORY_H
#define AGENT_LLM_MEMORY_H

#include "base/arena.h"
#include "base/hash.h"

struct memory_entry {
    digest strategy;
    char source_hash[65]; /* empty: none was written */
    str note, source, parents[2];
};
struct memory {
    struct arena *texts;
    struct memory_entry *entries;
    size_t n, cap;
};

void memory_init(struct memory *m);
void memory_release(struct memory *m);
struct memory_entry *memory_find(const struct memory *m, digest strategy); /* NULL: not met */
struct memory_entry *memory_of_source(const struct memory *m, str source_hash);
/* The entry, made when there is none; valid until the next call. */
struct memory_entry *memory_of(struct memory *m, digest strategy);
void memory_set_note(struct memory *m, digest strategy, str note);
void memory_set_source(struct memory *m, digest strategy, str source);

#endif
