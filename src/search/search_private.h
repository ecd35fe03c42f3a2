/* The driver's state, shared by its files. Private to the room. */
#ifndef SEARCH_SEARCH_PRIVATE_H
#define SEARCH_SEARCH_PRIVATE_H

#include "search/evolve.h"
#include "search/recall.h"
#include "search/search.h"

#define SEARCH_MEMORY_MAX (256u << 20)

/* A candidate under way. Its texts live in an arena of its own. */
struct pending {
    struct search *search;
    struct arena *mem;
    size_t trial;
    uint64_t generation;
    str strategy, reason, source;
    char hash[65], twin[65]; /* of the source, and of what makes it another candidate */
    struct origin origin;    /* for its record */
    struct outcome *outcome; /* NULL: not known */
    struct strategy aligned; /* as its code has it */
    bool is_known;           /* both are, and the archive has them */
    bool replayed;
};

/* An accepted candidate: what the result needs of it, should it be the best. Heap. */
struct kept {
    size_t trial;
    char *source;
    struct record *record;
};

struct source_hash {
    char hex[65];
};

struct search {
    struct loop *loop;
    const struct search_options *o;
    struct briefing briefing; /* the caller's, with history */
    struct history history;   /* retrieved */
    struct recalled recalled;
    struct evolve e;
    struct strategy fallback;
    struct evaluator_options eo;
    struct evaluator *evaluator; /* NULL: not needed so far */
    struct arena *mem;           /* of the search */
    struct arena *scratch;       /* of a turn */
    struct pending *pending;     /* [window], by ordinal */
    struct source_hash *twins;   /* by ordinal */
    size_t *trial_of;            /* … */
    size_t cap_twins, cap_trials;
    struct strategy *plan;
    size_t nplan;
    str plan_reason;
    uint64_t window;
    uint64_t generation; /* that was announced last, plus one */
    struct kept *kept;   /* in order of consumption */
    size_t nkept, cap_kept;
    struct search_best *best;
    uint64_t start_ms, before_ms; /* before: spent by earlier commands on this run */
    uint64_t time_ends;           /* candidates after which an earlier command ran out of time */
    const char *stopped;          /* from outside the core */
    bool failed;
    struct err err, code_err;
};

bool search_fail(struct search *s, const struct err *why); /* keeps the first; false */
void search_emit_text(const struct search *s, enum event_kind kind, str strategy, str text);

/* The fastest candidate that holds a second time; what does not is said. */
bool winner_choose(struct search *s, struct arena *a);

/* What the run begins with: of the archive where it has begun before, of the pools otherwise. */
bool search_recall(struct search *s);
/* What it came to, into the user's pool. A pool that cannot be written is said, no failure. */
void search_remember(struct search *s);

#endif
