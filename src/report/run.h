/* A run, read from its folder for a report. The archive is opened for reading and never changed;
 * the run may still be going on, may have been killed, may have come to nothing, and may be of an
 * older version: what a folder does not hold is absent here, and pages say so. Only a folder
 * without a readable archive is an error. Private to the room. */
#ifndef REPORT_RUN_H
#define REPORT_RUN_H

#include "archive/calls.h"
#include "eval/outcome.h"
#include "spec/cost.h"
#include "strategy/strategy.h"
#include "target/gpu.h"

#define RUN_NONE SIZE_MAX

struct report_candidate {
    uint64_t ordinal, generation;
    str strategy, reason, source, why, step;
    struct strategy decisions; /* where has_decisions: the catalogue knows all of them */
    bool has_decisions;
    bool damaged; /* its row cannot be read; `why` says it, and the verdict says nothing */
    enum verdict verdict;
    double time_s;               /* INFINITY: not accepted */
    double low_s, high_s;        /* of the median's interval; NAN: there is none */
    double decided_at;           /* seconds since 1970; NAN: not known */
    double dram_bytes;           /* that the simulator counts; NAN: not known */
    str bound;                   /* what limits it, by the model */
    size_t parents[2], nparents; /* places in the list */
};

enum run_state {
    RUN_EMPTY,   /* nothing was evaluated */
    RUN_OPEN,    /* it has not said that it ended: it goes on, or was killed */
    RUN_STOPPED, /* somebody interrupted it, or its environment failed */
    RUN_FAILED,  /* it ended, and no kernel was accepted */
    RUN_DONE,
};

struct report_run {
    const char *folder;
    struct arena *mem; /* of everything in it but the records and the JSON */
    struct catalogue *catalogue;
    json *print; /* the fingerprint; an empty object where there is none */
    str name, device;
    str verify_seed; /* as it was given; empty: it was drawn, and a secret */
    str task_text;
    struct task *task; /* NULL: the folder does not hold it, or it does not read; with `inst` */
    struct inst *inst;
    const struct gpu *gpu; /* NULL: not known */
    struct cost cost;      /* where there is an inst */
    double limit_s;        /* NAN: not known */
    struct report_candidate *candidates;
    size_t n, naccepted, nunjudged; /* nunjudged: of which nothing is known, for whatever reason */
    enum run_state state;
    str stopped; /* why it ended: "budget", "limit", …; empty: not known */
    double elapsed_s;
    /* The one that the run handed over (outcome.json), unless a faster one is known since. Its
     * record says whether it was confirmed. */
    size_t winner;          /* RUN_NONE: none was accepted */
    struct record *record;  /* the winner's; NULL: none */
    struct record *watched; /* of the simulator, about a winner that a GPU judged; NULL: none */
    bool estimated;
    double baseline_s, against_s; /* PyTorch's time and the winner's beside it; NAN: not timed */
    struct archive_call *calls;
    size_t ncalls;
    json *spent; /* on models (search/archived.h) */
};

bool report_run_read(const char *folder, const char *assets, struct arena *mem,
                     struct report_run *out, struct err *err);
void report_run_release(struct report_run *r);

static inline bool report_has_winner(const struct report_run *r) {
    return r->winner != RUN_NONE;
}

#endif
