/* A provider whose answers are kept in the archive of the run. A request that was answered before
 * is answered from there, at once and for nothing; that is how a run with models resumes. Requests
 * are known by role, ordinal and the hash of the prompt. */
#ifndef SEARCH_ARCHIVED_H
#define SEARCH_ARCHIVED_H

#include "agent/llm/provider.h"
#include "archive/calls.h"

/* inner and archive are borrowed. release() of the result frees only the result. */
void archived_provider(const struct provider *inner, struct archive *a, struct provider *out);
size_t archived_replayed(const struct provider *p); /* answers from the archive so far */
/* What the answers of a whole run have cost, whichever command asked: a provider's account. NULL
 * with err; owned by the caller. */
json *archived_spent(struct archive *a, struct err *err);

#endif
