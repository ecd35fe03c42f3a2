/* What the agent remembers of the strategies it has met, by their hash: the sentence a strategist
 * added, the source that was written, the two sources that it is to be made of. Owns its texts.
 * Everything in it follows from requests and replies, so a replayed run remembers the same. */
#ifndef AGENT_LLM_NOTEBOOK_H
#define AGENT_LLM_NOTEBOOK_H

#include "base/arena.h"
#include "base/hash.h"

struct notebook_entry {
    digest strategy;
    char source_hash[65]; /* empty: none was written */
    str note, source, parents[2];
};
struct notebook {
    struct arena *texts;
    struct notebook_entry *entries;
    size_t n, cap;
};

void notebook_init(struct notebook *m);
void notebook_release(struct notebook *m);
struct notebook_entry *notebook_find(const struct notebook *m, digest strategy); /* NULL: not met */
struct notebook_entry *notebook_of_source(const struct notebook *m, str source_hash);
/* The entry, made when there is none; valid until the next call. */
struct notebook_entry *notebook_of(struct notebook *m, digest strategy);
void notebook_set_note(struct notebook *m, digest strategy, str note);
void notebook_set_source(struct notebook *m, digest strategy, str source);

#endif
