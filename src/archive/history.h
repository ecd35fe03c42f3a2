/* The history pool: what strategies came to on which tasks, from earlier runs. A text file, one run
 * a line, only ever added to: features of the task, device, and the strategies that were tried with
 * their times relative to the run's best. One is shipped with the program (assets/history/), one
 * grows in the user's data folder; both are read at the start of a run, which archives what it took
 * from them, so that resuming it does not depend on what the pool has become.
 *
 * Strategies are kept as text: decisions that a catalogue does not know (any more) are passed over.
 */
#ifndef ARCHIVE_HISTORY_H
#define ARCHIVE_HISTORY_H

#include "agent/agent.h"

struct history_trial {
    str strategy;
    double ratio; /* time / the run's best; INFINITY: not accepted */
};

struct history_run {
    str task, shape, device;
    str text_hash; /* of the task's file: hexadecimal SHA-256 */
    bool estimated;
    int64_t arch;
    struct features features;
    struct history_trial *trials; /* in order of submission */
    size_t n;
    double best_s, weight; /* weight: of a retrieval */
};

struct history {
    struct history_run *runs;
    size_t n, cap;
    struct arena *mem; /* of everything in it */
};
void history_init(struct history *h);
void history_release(struct history *h);

/* Adds the runs of a text, or of a file where there is one (none is fine). Lines that are not of
 * this program's making are an error with their number. */
bool history_parse(struct history *h, str file, str text, struct err *err);
bool history_load(struct history *h, const char *path, struct err *err);
/* The user's pool, for a run: what cannot be read of it, a line or all, is no reason to stop. The
 * warning then says which and what to do; its kind is ERR_NONE otherwise. */
void history_load_pool(struct history *h, const char *path, struct err *warning);
/* The shipped pool. */
bool history_load_shipped(struct history *h, const char *assets, struct err *err);
/* The user's: XDG_DATA_HOME/cutepilot/history.jsonl or ~/.local/share/…; empty: no home. */
str history_path(struct arena *a);

/* A run of the task, without trials. */
void history_describe(const struct briefing *b, const char *device, bool estimated, struct arena *a,
                      struct history_run *out);
/* Whether the run was on this very task, at any shape. */
bool history_is_of(const struct history_run *run, const struct task *t);
/* A copy with as many of the trials as a line has room for: the fastest, and a spread of the rest.
 */
void history_add(struct history *h, const struct history_run *run);
/* One line a run. */
void history_text(const struct history *h, struct buf *out);
/* Adds those lines to the file which it does not have yet; *added says how many. */
bool history_append(const char *path, const struct history *h, size_t *added, struct err *err);

/* The runs on the tasks that are most alike, the most alike first, with their weights: at most
 * `most`. Runs of the very same task and shape count only with `itself`. `out` gets copies. */
void history_retrieve(const struct history *h, const struct history_run *like, bool itself,
                      size_t most, struct history *out);

#endif
