/* A measured space: a file with the outcome of every strategy of a lattice (strategy/lattice.h),
 * made by `cutepilot space`, against which searches are replayed.
 *
 * The file is text, one JSON object a line, only ever added to. The first line says what was
 * measured where (task, sizes, device, the GPU's facts, the catalogue's values that are left), so
 * that a replay needs nothing else. Then one line a strategy: its text, the text aligned to the
 * code, verdict, time, and a hash of its source; strategies with the same source share one
 * measurement. A last line without its end is what a killed process left: it is dropped. */
#ifndef ARCHIVE_TABLE_H
#define ARCHIVE_TABLE_H

#include "agent/agent.h"
#include "kernel/verdict.h"

/* ---- writing ---- */

struct table_head {
    const struct briefing *briefing; /* with the whole catalogue */
    const struct catalogue *kept;    /* … and with the values that are left */
    const char *device;
    str toolchain;
    bool estimated;
    size_t rows; /* there will be so many */
    uint64_t seed;
};

struct table_writer;
/* Opens or makes the file, locked. One of something else is refused. */
bool table_open(const char *path, const struct table_head *h, struct table_writer **out,
                struct err *err);
bool table_has(const struct table_writer *w, str strategy);
size_t table_count(const struct table_writer *w); /* rows it had when it was opened */
struct table_line {
    str strategy, aligned;
    bool written; /* false: the coder refused it; nothing below holds */
    enum verdict verdict;
    double time_s;
    const char *source_hash;
};
bool table_add(struct table_writer *w, const struct table_line *l, struct err *err);
void table_close(struct table_writer *w);

/* ---- reading ---- */

struct table_row {
    struct strategy strategy; /* rows are sorted by it */
    struct strategy aligned;
    bool written;
    enum verdict verdict;
    double time_s;   /* INFINITY: not accepted */
    uint64_t source; /* equal for equal sources */
};

struct table {
    struct task *task;
    struct inst *inst;
    const struct gpu *gpu;
    struct catalogue catalogue; /* what is left of it */
    struct briefing briefing;   /* … and the task on it */
    str device;
    bool estimated;
    struct table_row *rows;
    size_t n, planned;
    double best_s; /* INFINITY: nothing was accepted */
};
/* In the arena. assets as in catalogue_load. */
bool table_load(const char *path, const char *assets, struct arena *a, struct table *out,
                struct err *err);
/* The row of a strategy, or n. */
size_t table_find(const struct table *t, const struct strategy *s);
/* Whether it is the first row of its source: strategies that come to the same code share it. */
bool table_is_first(const struct table *t, size_t row);

#endif
