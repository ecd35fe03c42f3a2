/* What a model answered, read: prose around a whole source in one fenced block, around edits of the
 * source it was shown, or around strategies in a fenced block.
 *
 *     <<<<<<< SEARCH
 *     lines of the source as they are
 *     =======
 *     lines that take their place
 *     >>>>>>> REPLACE
 *
 * What surrounds these is nobody's business, except a line `IDEA: …`, which says what was tried,
 * and one `INSTEAD: …`, which says where that is not what was asked for. A reply is hostile text:
 * it is bounded before it comes here, and nothing in it is obeyed. What cannot be read is answered
 * with an err that is written for the model: which part, what is wrong with it, what to send
 * instead. Results are views of the reply or live in the arena. */
#ifndef AGENT_LLM_REPLY_H
#define AGENT_LLM_REPLY_H

#include "base/arena.h"
#include "base/err.h"

#define REPLY_MAX_EDITS 64
#define REPLY_MAX_LINES 64 /* of a block of strategies */

struct reply_source {
    str source;
    str idea;      /* empty: it said none */
    str instead;   /* empty: what was asked for */
    size_t nedits; /* 0: a whole source */
};
/* `before` is the source that edits are applied to, in order; empty: only a whole source will do.
 */
bool reply_read_source(str text, str before, struct arena *a, struct reply_source *out,
                       struct err *complaint);
/* A line `DONE: …` and neither source nor edits: there is nothing to change. *why is what follows.
 */
bool reply_is_done(str text, str *why);

/* The lines of the one block fenced as ```strategy, blanks and empty lines gone. A line's comment,
 * from `#` on, is what the model says about it. */
struct reply_line {
    str text, comment;
};
bool reply_read_strategies(str text, struct arena *a, struct reply_line **out, size_t *n, str *idea,
                           struct err *complaint);

#endif
