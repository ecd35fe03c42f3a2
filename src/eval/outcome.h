/* What happened to a candidate. An outcome is made once, by the evaluator, and afterwards only
 * read: by the search, the archive, the terminal, and people (outcome.json). */
#ifndef EVAL_OUTCOME_H
#define EVAL_OUTCOME_H

#include "base/json.h"
#include "kernel/verdict.h"
#include "sim/model.h"

struct outcome {
    enum verdict verdict;
    double time_s;  /* estimate or measurement; INFINITY when not accepted */
    bool estimated; /* by the simulator's model */
    bool covered;   /* accepted, and everything that was met at the task's own shape was judged */
    char bound[24]; /* what binds it, by the model: "dram", "issue", … */
    double limit_share; /* limit / time; 0 when not accepted */
    char *why;          /* for the author; "" when accepted */
    json *record;       /* everything, as stored; owned */
};

struct outcome *outcome_from_record(json *record, struct err *err); /* takes the record */
void outcome_free(struct outcome *o);

#endif
