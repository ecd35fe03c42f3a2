/* What a search tells its readers: terminal, plain lines, --json, reports. An event is valid during
 * the call.
 *
 * VERIFY: a finalist is verified once more. TICK: some time has passed and nothing else is new, for
 * who shows a clock; one a second while something is waited for. */
#ifndef SEARCH_EVENT_H
#define SEARCH_EVENT_H

#include "kernel/verdict.h"

enum event_kind {
#define EVENT(id, name) EVENT_##id,
#include "search/event.def"
#undef EVENT
    EVENT_COUNT
};
const char *event_name(enum event_kind k);

struct event {
    enum event_kind kind;
    uint64_t generation, ordinal; /* of GENERATION; of CANDIDATE and BEST */
    size_t done, budget;          /* candidates; budget 0: none */
    double elapsed_s, budget_s;   /* budget_s 0: none */
    str strategy;                 /* a model's code: the idea behind it; of START: the strategy
                                     with every decision at its default */
    str text;                     /* why, reason or note */
    enum verdict verdict;
    double time_s, best_s, limit_s, naive_s; /* INFINITY where unknown */
    double best_low_s, best_high_s;          /* interval of best_s; 0: it was not measured */
    bool estimated, replayed;
    bool planning; /* nothing that could be evaluated has been written so far */
};
typedef void event_fn(void *ctx, const struct event *e);

#endif
