/* Readers of a search's events: a view of a few lines that is drawn over itself on a terminal,
 * plain lines elsewhere, events.jsonl.
 *
 * A candidate is shown as what it has that the best so far has not; the first ones are held against
 * the kernel with every decision at its default. What a resumed run takes from its archive is one
 * line. The view leaves nothing on the screen; notes are lines that stay. */
#ifndef UI_PROGRESS_H
#define UI_PROGRESS_H

#include "search/event.h"

enum progress_how { PROGRESS_NONE, PROGRESS_PLAIN, PROGRESS_LIVE };
enum progress_phase { PHASE_PLANNING, PHASE_SEARCHING, PHASE_VERIFYING };

/* Where a suite has got to. */
struct progress_suite {
    size_t task, tasks; /* the present one, from 1 */
    double before_s;    /* how long the earlier ones took */
    uint64_t start_ms;  /* by the clock */
};

struct progress {
    enum progress_how how;
    int log_fd; /* one JSON object a line; -1: none */
    bool log_failed;
    /* What the log had when it was opened, by kind of event and ordinal or generation. */
    bool *logged[EVENT_COUNT];
    size_t nlogged[EVENT_COUNT];
    char title[128];                    /* of the view: the task and the device; set by the owner */
    const struct progress_suite *suite; /* NULL: a run of its own; set by the owner */
    enum progress_phase phase;
    uint64_t generation;
    size_t replayed; /* candidates of the archive, and when the last of them was there */
    double replayed_s;
    size_t said_replayed;
    double best_s;
    bool estimated; /* times are a model's; set by the owner */
    bool headed;
    struct buf base; /* the best's strategy */
    struct progress_candidate {
        struct event event;
        struct buf base, strategy, text;
        double best_s; /* before it */
    } last;            /* for the view; without a strategy: none */
    size_t drawn[8];   /* columns of the lines of the view that is on the screen */
    size_t ndrawn;
};

/* `how` as of --progress; auto looks at stderr. */
void progress_init(struct progress *p, const char *how);
/* From now on, once. Events are added to what the file has, and never taken from it: it is the
 * timeline of the run, whichever commands it took. A command that goes on with a run goes through
 * what is archived first; what the log has of that is not said again. */
void progress_log_to(struct progress *p, const char *path);
void progress_release(struct progress *p);
void progress_event(void *ctx, const struct event *e); /* an event_fn */
void progress_clear(struct progress *p); /* the view is taken off the screen until the next event */

#endif
