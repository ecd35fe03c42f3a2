/* The calls of a provider: at most so many at a time, in the order they were asked, each tried
 * until it is answered, refused, out of patience or over a cap. Owns the backend, the account and
 * the recorder. */
#ifndef AGENT_LLM_CALLS_H
#define AGENT_LLM_CALLS_H

#include "agent/llm/account.h"
#include "agent/llm/backend.h"
#include "agent/llm/record.h"

struct calls;

struct calls_options {
    struct loop *loop;
    struct backend backend;
    struct recorder *recorder; /* NULL: none */
    const char *name;          /* of the provider, for messages */
    struct caps caps;
    struct price price;
    uint64_t max_ms; /* from now; 0: no cap */
    uint64_t max_reply_tokens, concurrency;
    struct rng jitter;
    llm_notice_fn *notice;
    void *notice_ctx;
};

struct calls *calls_new(const struct calls_options *o);
void calls_free(struct calls *c); /* not from a callback */
uint64_t calls_ask(struct calls *c, const struct llm_request *q, llm_done_fn *done, void *ctx);
void calls_cancel(struct calls *c, uint64_t number);
json *calls_account(const struct calls *c);

#endif
