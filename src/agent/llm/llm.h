/* The agent on a language model: the six roles as prompts to a provider (DESIGN's Decision 4).
 *
 * A reply that cannot be read is complained about to the model, a bounded number of times; after
 * that the request has failed, and only the request. Whatever a model writes is a candidate like
 * any other: nothing in this folder judges it, and nothing believes it.
 *
 * Requests are numbered per role in the order in which the search makes them, each with room for
 * its complaints (LLM_TRIES), so that numbers do not depend on the order of the answers: a
 * recording or the archive of a run answers the same request again. */
#ifndef AGENT_LLM_LLM_H
#define AGENT_LLM_LLM_H

#include "agent/agent.h"
#include "agent/llm/prompt.h"
#include "agent/llm/provider.h"

#define LLM_TRIES 3 /* requests for one answer */

enum role {
#define ROLE(id, name) ROLE_##id,
#include "agent/llm/role.def"
#undef ROLE
    ROLE_COUNT
};
const char *role_name(enum role r);

struct llm_options {
    struct prompt_options prompt; /* texts in it live as long as the agent */
    bool cross_code;              /* crossover combines two sources, not two strategies */
};

/* The provider is borrowed and outlives the agent. */
void llm_new(const struct provider *p, const struct llm_options *o, struct agent *out);

/* The expert and a model as one agent: the expert seeds the population and tunes parameters, the
 * model changes structure, repairs and improves. Both are borrowed, and outlive it. */
void hybrid_new(struct agent *expert, struct agent *llm, struct agent *out);

#endif
