/* One task optimized: the search, its folder and what it found. `optimize` does it for one task,
 * `suite` for many. A folder that holds the same run already goes on where it stopped. */
#ifndef UI_OPTIMIZE_RUN_H
#define UI_OPTIMIZE_RUN_H

#include "search/search.h"
#include "ui/agents.h"
#include "ui/progress.h"
#include "ui/ui.h"

struct optimize {
    struct ui *ui; /* options, and an arena that lives as long as this */
    const char *path, *dir;
    struct task *task;
    struct inst *inst;
    struct catalogue *catalogue;
    struct agents agents;
    struct briefing briefing;
    struct evaluator_options eo;
    struct archive *archive;
    struct progress progress;
    const struct progress_suite *suite; /* which the run is part of; NULL: none */
    struct search_best best;
    const char *rescued; /* where the result is that could not be written to dir; NULL: it was */
    json *account;       /* of the model; NULL: none was asked */
    double baseline_s;   /* the better of PyTorch's ways, timed in turns with the best; 0: none */
    double against_s;    /* … the best's own time then */
    str no_baseline;     /* why there is none, where one was asked for */
    bool rejected; /* the winner, when it was verified once more to be timed against PyTorch */
};
/* ui, path and dir (NULL: runs/TASK) are set. Writes kernel.cu and outcome.json into the folder
 * where a kernel was found; best.found says whether. False: the environment or the input failed. */
bool optimize_run(struct optimize *r, struct err *err);
/* Whether dir may be this run's: it holds none, or the same one, or the run itself will say what is
 * wrong. Changes nothing. */
bool optimize_may_use(struct optimize *r, struct err *err);
void optimize_release(struct optimize *r);
bool optimize_interrupted(void); /* by a signal: whoever runs several stops too */
/* Exit code after optimize_run: 0 a kernel was found, 1 none, 3 the environment failed on the way,
 * 4 it was interrupted. What was found by then is written. */
int optimize_code(const struct optimize *r);

/* Times the best against PyTorch, where --baseline asks for it; on a GPU that is the default of
 * `optimize` (`usual`). */
void optimize_baseline(struct optimize *r, const char *usual);

/* That the budget was too short for one candidate, and how long one takes; or that the run had used
 * it up before, and which one goes on. Empty: neither. */
str optimize_short(const struct optimize *r);
str optimize_nothing(const struct optimize *r);  /* where no kernel was found: what to look at */
str optimize_strategy(const struct optimize *r); /* of the best, as text */

#endif
