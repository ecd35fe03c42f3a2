/* A part of a task's space measured into a table: `space` does it for one task, `ablate` for those
 * that have no table yet. The same table again goes on where it stopped. */
#ifndef UI_SPACE_RUN_H
#define UI_SPACE_RUN_H

#include "agent/agent.h"
#include "archive/table.h"
#include "eval/eval.h"
#include "strategy/lattice.h"
#include "ui/ui.h"

struct space_source;

struct space {
    struct ui *ui;
    const char *task_path, *path; /* path: the table; NULL: TASK.space */
    struct task *task;
    struct inst *inst;
    struct catalogue *catalogue;
    struct agent agent;
    struct briefing briefing;
    struct evaluator_options eo;
    struct lattice lattice;
    struct table_writer *table;
    struct space_source *sources; /* distinct ones without a row */
    size_t nsources;
    struct strategy *written; /* by index in the lattice: with what its decisions became */
    size_t *next;             /* by index in the lattice: the next with the same source; n: none */
    size_t before, done, accepted, refused;
    double best_s;
    uint64_t start_ms;
    struct err err;
};
/* ui, task_path and path are set. */
bool space_run(struct space *s, struct err *err);
void space_release(struct space *s);

#endif
