/* Server-sent events, read from a text that has arrived: the data of one event after another.
 * Lines end with LF, CR or CRLF; comments, unknown fields and a byte-order mark are passed over.
 * Pure: no memory of its own, the data of an event goes to the caller's buffer. */
#ifndef AGENT_LLM_SSE_H
#define AGENT_LLM_SSE_H

#include "base/str.h"

/* The next event that has data, its lines joined by LF in `data` (cleared first), and what follows
 * it in `rest`. False at the end. `whole` is false for an event that the text ends within, before
 * its empty line. */
bool sse_next(str *rest, struct buf *data, bool *whole);

#endif
