/* A backend makes one attempt at an answer: a request to a server, a run of a program, a look into
 * a recording. Whether and when to try again, what it may cost and who waits is decided above it
 * (provider.c).
 *
 * An attempt ends once, through its callback, from the loop and never before start() returns; an
 * aborted one never. A callback may start and abort others, but not release the backend. */
#ifndef AGENT_LLM_BACKEND_H
#define AGENT_LLM_BACKEND_H

#include "agent/llm/provider.h"

enum attempt_end {
    ATTEMPT_ANSWERED,
    ATTEMPT_BAD,     /* something came, of no use: worth a few more tries */
    ATTEMPT_AWAY,    /* nobody is there, or too busy: worth trying until the time is up */
    ATTEMPT_REFUSED, /* the same request will not be answered */
};

struct attempt {
    enum attempt_end end;
    str text; /* the answer, or what came of it; valid during the callback */
    uint64_t tokens_in, tokens_out;
    bool counted;  /* by the model's side; else they are estimated above */
    bool used;     /* the model has worked: charged, answered or not */
    bool cut;      /* by the limit on its tokens */
    bool recorded; /* cost, seconds and tokens are those of a recorded call */
    double cost, seconds;
    uint64_t wait_ms;   /* that the other side asks for; 0: not said */
    enum err_kind kind; /* of ATTEMPT_REFUSED */
    const char *why;    /* one line, where there is no answer */
};

typedef void attempt_fn(void *ctx, const struct attempt *a);

struct backend {
    void *self;
    /* The attempt, for abort; NULL and err where it cannot be made. max_tokens is set in q, and q's
     * texts stay valid until the attempt has ended. */
    void *(*start)(void *self, const struct llm_request *q, attempt_fn *done, void *ctx,
                   struct err *err);
    void (*abort)(void *attempt);
    void (*release)(void *self); /* no attempt is under way any more */
};

/* The three there are; strings of o are borrowed for the backend's life. */
bool remote_open(struct loop *l, const struct provider_options *o, struct backend *out,
                 struct err *err);
bool command_open(struct loop *l, const struct provider_options *o, struct backend *out,
                  struct err *err);
/* model: of the first recorded call, in the backend's memory. */
bool replay_open(struct loop *l, const struct provider_options *o, struct backend *out,
                 const char **model, struct err *err);

#endif
