/* Recordings of what was asked and answered: one JSON object a line (docs/MODELS.md lists the
 * fields). A recorder appends whole lines, so that a killed run loses at most the last one; a
 * recording is what a reader makes of such a file: answers by role and ordinal, later lines winning
 * over earlier ones. Never a key: only texts, numbers and the model's name are written. */
#ifndef AGENT_LLM_RECORD_H
#define AGENT_LLM_RECORD_H

#include "agent/llm/provider.h"

struct recorder;
/* Appends to the file, made readable for its owner alone. */
struct recorder *recorder_open(const char *path, const char *provider, const char *model,
                               struct err *err);
/* reply or failure: the other is NULL. */
bool recorder_put(struct recorder *r, const struct llm_request *q, const struct llm_reply *reply,
                  const struct err *failure, struct err *err);
void recorder_close(struct recorder *r); /* NULL is fine */

struct recording {
    struct arena *arena;
    json **lines; /* {"role", "ordinal", "prompt", "reply" …}, one at the least */
    size_t n, cap;
    size_t skipped; /* lines of the file that are no record */
};
struct recording *recording_read(const char *path, struct err *err); /* NULL and err */
void recording_free(struct recording *r);
/* NULL: none. Borrowed. */
const json *recording_find(const struct recording *r, const char *role, uint64_t ordinal);
size_t recording_count(const struct recording *r, const char *role);

void prompt_hash(str system, str user, char out[65]);

#endif
