/* What a search tells its readers: terminal, plain lines, --json, reports. An event is valid during
 * the call. */
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
    str strategy, text;           /* text: why, reason or note */
    enum verdict verdict;
    double time_s, best_s, limit_s, naive_s; /* INFINITY where unknown */
    bool estimated, replayed;
};
typedef void event_fn(void *ctx, const struct event *e);

#endif
