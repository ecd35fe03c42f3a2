/* What the agent remembers of the strategies it has met, by their hash: the sentence a strategist
 * added, the source that was written and where its author left the strategy; and, where crossover
 * is one of code, the pairs of kernels that children are to be made of. Owns its texts. Everything
 * in it follows from requests and replies, so a replayed run remembers the same. */
#ifndef AGENT_LLM_NOTEBOOK_H
#define AGENT_LLM_NOTEBOOK_H

#include "agent/agent.h"

struct notebook_entry {
    digest strategy;
    char source_hash[65]; /* empty: none was written */
    str note, source;
    str instead; /* what the author did instead of the strategy; empty: nothing */
};
struct notebook_parent {
    struct parent was;
    str source;
};
struct notebook_pair {
    digest child; /* as it was proposed */
    struct notebook_parent parents[2];
    bool used;
};
struct notebook {
    struct arena *texts;
    struct notebook_entry *entries;
    size_t n, cap;
    struct notebook_pair *pairs;
    size_t npairs, cap_pairs;
};

void notebook_init(struct notebook *m);
void notebook_release(struct notebook *m);
struct notebook_entry *notebook_find(const struct notebook *m, digest strategy); /* NULL: not met */
struct notebook_entry *notebook_of_source(const struct notebook *m, str source_hash);
/* The entry, made when there is none; valid until the next call. */
struct notebook_entry *notebook_of(struct notebook *m, digest strategy);
void notebook_set_source(struct notebook *m, digest strategy, str source);
void notebook_add_pair(struct notebook *m, digest child, const struct notebook_parent *x,
                       const struct notebook_parent *y);
/* The pair for a child; for one that the search moved away from its proposal, the oldest that
 * waits. NULL: there is none. It is used up by this. */
const struct notebook_parent *notebook_take_pair(struct notebook *m, digest child);

#endif
