/* Readers of a search's events: a live line on a terminal, plain lines elsewhere, events.jsonl. */
#ifndef UI_PROGRESS_H
#define UI_PROGRESS_H

#include "search/event.h"

enum progress_how { PROGRESS_NONE, PROGRESS_PLAIN, PROGRESS_LIVE };

struct progress {
    enum progress_how how;
    int log_fd; /* one JSON object a line; -1: none */
    bool log_failed;
    /* What the log had when it was opened, by kind of event and ordinal or generation. */
    bool *logged[EVENT_COUNT];
    size_t nlogged[EVENT_COUNT];
    bool line_open; /* the live line is on the screen */
    uint64_t generation;
    size_t replayed; /* candidates of the archive, and when the last of them was there */
    double replayed_s;
};

/* `how` as of --progress; auto looks at stderr. */
void progress_init(struct progress *p, const char *how);
/* From now on, once. Events are added to what the file has, and never taken from it: it is the
 * timeline of the run, whichever commands it took. A command that goes on with a run goes through
 * what is archived first; what the log has of that is not said again. */
void progress_log_to(struct progress *p, const char *path);
void progress_release(struct progress *p);
void progress_event(void *ctx, const struct event *e); /* an event_fn */

#endif
