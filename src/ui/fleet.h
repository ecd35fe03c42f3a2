/* Runs of this program side by side, each a process of its own with workers of its own: the tasks
 * of a suite over the GPUs of this machine, of others, or of a cluster, or one run over a
 * cluster's.
 *
 * A place for a worker belongs to one run at a time, and a run has places of one type of GPU. A run
 * that ends because its environment failed (a node that died with all of its workers) is started
 * again, elsewhere where there is an elsewhere, and goes on where it stopped. So are all when the
 * allocation ends and another one is granted. A signal is passed on; whoever has not ended
 * END_MS later is killed. */
#ifndef UI_FLEET_H
#define UI_FLEET_H

#include "ui/ui.h"

struct fleet_job {
    const char *const *words; /* its command line, without what says where workers are */
    size_t most;              /* places that it can use at most */
    str type;                 /* of GPU; empty: the fleet chooses */
};

struct fleet {
    struct ui *ui;
    struct fleet_job *jobs; /* `type` is set where it was empty */
    size_t n;
    bool captured; /* what a job prints on stdout is given to `done`; otherwise it is ours */
    void (*begun)(void *ctx); /* a job starts, and its `type` is chosen; NULL: ignored */
    /* Before anything starts: may a job whose `type` none of the devices named has take another
     * one? False, with err: nothing starts. NULL: each may. */
    bool (*may_change)(void *ctx, size_t job, struct err *err);
    /* Of each job once, as they end; code: its exit code. */
    void (*done)(void *ctx, size_t job, int code, str said);
    void *ctx;
    bool interrupted; /* out: by a signal, or because the allocation comes to its end */
};

/* How many places the command asks for: on --cluster, or (here) by a list; 0: it is not for a
 * fleet. */
bool fleet_asked_for(struct ui *ui, bool here, size_t *places, struct err *err);
bool fleet_run(struct fleet *f, struct err *err);
/* `words` for a command: the options of this process as they were given, but not those named here
 * nor where workers are, then some more. Lists are NULL-terminated. */
const char **fleet_words(struct ui *ui, const char *command, const char *argument,
                         const char *const *without, const char *const *more, struct arena *a);

/* A whole command over a cluster, as one job: optimize, space. Returns its exit code. */
int fleet_run_command(struct ui *ui, const char *command, size_t most);

#endif
