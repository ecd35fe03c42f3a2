/* What the workflows with models share: the clock, the archive and the events of a run. Every
 * outcome and every answer of a model is recorded, and the time that was spent; a run that is
 * started again goes through its records first. Time that is up stops it only where something would
 * have to be waited for, so it comes to the same end. Private to the room. */
#ifndef SEARCH_JOURNAL_H
#define SEARCH_JOURNAL_H

#include "search/search.h"

/* A candidate that was evaluated, or is about to be. */
struct entry {
    uint64_t ordinal; /* of evaluation */
    uint64_t generation, slot;
    struct strategy strategy;
    str source, reason;
    struct origin origin;    /* for the record, without its ordinal */
    char hash[65];           /* of the source */
    struct outcome *outcome; /* owned; NULL: not known */
    bool replayed;
};

struct journal {
    const struct search_options *o;
    struct search_best *best; /* counts what is evaluated */
    struct arena *mem;        /* as long as the run */
    uint64_t start_ms, before_ms;
    uint64_t generation, done; /* for events */
    double best_s;
    str budgets;         /* of candidates, of every command that has gone on with the run */
    const char *stopped; /* NULL: goes on */
    bool failed;
    struct err err;
};

bool journal_open(struct journal *j, const struct search_options *o, struct arena *mem,
                  struct search_best *best);
/* Both return false, for the caller to return. The first reason stays. */
bool journal_fail(struct journal *j, const struct err *why);
bool journal_stop(struct journal *j, const char *why);
bool journal_goes_on(const struct journal *j);

/* Candidates that the budget has left where so many were evaluated, as roles are told: of the first
 * budget that is not used up. A run that is gone on with under another one asks what it asked
 * before in the same words, or its recorded answers would not be found. */
uint64_t journal_left(const struct journal *j, uint64_t evaluated);

/* One step of the loop; false where waiting has come to its end: the run failed or stopped. */
bool journal_wait(struct journal *j, struct loop *l);

/* The outcome recorded for the entry, if there is one. False: failed. */
bool journal_recall(struct journal *j, struct entry *e);
bool journal_keep(struct journal *j, const struct entry *e);

/* The strategy of an accepted entry as its compiled code shows it. */
void journal_align(const struct journal *j, const struct entry *e, struct strategy *out);
/* Leaves the run to history (recall.h), with a note where that fails. */
void journal_leave(const struct journal *j, const struct evaluator_options *eo,
                   const struct tried *list, size_t n);

void journal_say(const struct journal *j, enum event_kind kind, str text);
void journal_show(const struct journal *j, enum event_kind kind, const struct entry *e);
void journal_refused(void *ctx, str text); /* a finalist_note_fn */

void entry_set_source(struct entry *e, str source);

#endif
