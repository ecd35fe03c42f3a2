/* A provider answers prompts: a model behind HTTP, a program, or a recording. One interface, so
 * that the roles do not know who answers.
 *
 * Calls are asynchronous: ask() returns at once, the answer comes through the callback exactly
 * once, from the loop or (a recording) before ask() returns. Several may be in flight; cancelled
 * ones are never answered. The provider does retries, time-outs, accounting and the caps; what it
 * reports as an error is final for that call. It never stores or shows a key. */
#ifndef AGENT_LLM_PROVIDER_H
#define AGENT_LLM_PROVIDER_H

#include "base/arena.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/rng.h"

struct llm_request {
    const char *role;    /* "coder": for records, accounts and replay */
    uint64_t ordinal;    /* of the role's requests in this run, from 0 */
    uint64_t candidate;  /* that it is made for; UINT64_MAX: none */
    str system, user;    /* copied by ask() */
    uint64_t max_tokens; /* of the reply; 0: the provider's option */
};

struct llm_reply {
    str text; /* valid during the callback */
    uint64_t tokens_in, tokens_out;
    bool tokens_estimated; /* the provider did not say */
    double cost;           /* in dollars; NAN: the model's price is not known */
    double seconds;
    bool cut; /* ended by max_tokens */
};

/* Exactly one of reply and err is given. ERR_NO is a cap: the run should end, resumably. A callback
 * may ask and cancel, but not release the provider. */
typedef void llm_done_fn(void *ctx, const struct llm_reply *reply, const struct err *err);
/* Something a person should know: a pause, a retry, a prompt that differs from the recorded one. */
typedef void llm_notice_fn(void *ctx, str text);

struct provider {
    const char *name;  /* "openai" */
    const char *model; /* as shown and recorded */
    void *self;
    /* The call's number, for cancel; 0 when it was answered before ask() returned. */
    uint64_t (*ask)(void *self, const struct llm_request *q, llm_done_fn *done, void *ctx);
    void (*cancel)(void *self, uint64_t call);
    /* {"calls":N,"tokens_in":…,"tokens_out":…,"cost":…|null,"roles":{…}}; owned by the caller. */
    json *(*account)(void *self);
    void (*release)(void *self);
};

struct provider_options {
    const char *kind; /* "openai", "anthropic", "command", "replay" */
    const char *model;
    const char *url;            /* NULL: the kind's */
    const char *key_file;       /* NULL: the environment variable of the URL's host */
    const char *command;        /* of "command", and the file of "replay" */
    bool command_json;          /* the command gets its prompt as a JSON object */
    const char *record;         /* JSONL file that all traffic is appended to; NULL: none */
    double price_in, price_out; /* dollars a million tokens; negative: from the table of models */
    double max_cost;            /* 0: no cap, and for the three below */
    uint64_t max_tokens, max_calls, max_ms;
    uint64_t max_reply_tokens; /* 0: 16384 */
    double temperature;        /* NAN: the model's */
    uint64_t concurrency;      /* calls in flight; 0: 8 */
    uint64_t timeout_ms;       /* of one call; 0: ten minutes */
    struct rng jitter;
    const char *assets;
    llm_notice_fn *notice; /* may be NULL */
    void *notice_ctx;
};

bool provider_new(struct loop *l, const struct provider_options *o, struct provider *out,
                  struct err *err);

#endif
