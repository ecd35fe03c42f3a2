/* Evidence: what a role is told about a candidate that was tried, as text. Typed by what happened:
 * compiler messages with the code around them, template noise folded; mismatches with the pattern
 * they show; what the simulator's checkers saw; or, of an accepted candidate, where its time goes.
 * Everything is read off the outcome's record; nothing secret is in one (the verification seed is
 * never written out). Sizes are bounded: a compiler's log may be of any length, the text is not. */
#ifndef AGENT_LLM_EVIDENCE_H
#define AGENT_LLM_EVIDENCE_H

#include "base/arena.h"
#include "eval/outcome.h"
#include "spec/task.h"

/* Why a candidate was not accepted. */
void evidence_write(const struct outcome *o, const struct task *t, str source, struct buf *out);

/* Profile facts of an accepted candidate, with units, one paragraph a kernel. */
void facts_write(const struct outcome *o, struct buf *out);

/* … on one line: what binds each kernel, and how it fills the GPU. */
void facts_summarise(const struct outcome *o, struct buf *out);

/* Whether something that menus ask for is in the compiled code, in whatever words its source says
 * it: "wide" (every kernel that loads from global memory has loads of 16 bytes a lane),
 * "streaming", "one-launch", or a group of the census ("shuffle", "mma", "cp_async", …), in any
 * kernel. False where the record does not say. It looks at the PTX and the plan alone, so it is no
 * profile. */
bool facts_hold(const struct outcome *o, str name);

/* ---- parts, for tests ---- */

/* The compiler's log, folded. */
void evidence_compiler(str log, str source, struct buf *out);
/* One or more sentences on what the mismatches have in common; nothing where they show nothing. */
struct mismatch_row {
    int64_t index[TASK_MAX_RANK];
    double expected, got;
};
struct mismatches {
    size_t rank;
    int64_t extent[TASK_MAX_RANK]; /* 0: not known */
    struct mismatch_row *rows;
    size_t n;
    uint64_t wrong, count; /* of all elements; 0: not known */
};
void evidence_pattern(const struct mismatches *m, struct buf *out);
/* Lines around `line` (from 1), numbered, the line marked. */
void evidence_lines(str source, size_t line, struct buf *out);

#endif
