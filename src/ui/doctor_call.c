/* One call of a few tokens. An outage is waited for a minute, not for an hour. */
#include "ui/doctor_call.h"

#include "base/say.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { PATIENCE_MS = 60000, REPLY_TOKENS = 64 };

struct test {
    const struct provider *provider;
    bool done, ok;
    char *found;
    size_t n;
    struct err *err;
};

static void on_notice(void *ctx, str text) {
    (void)ctx;
    complain("cutepilot: %.*s\n", STR_ARG(text));
}

static void on_answer(void *ctx, const struct llm_reply *r, const struct err *failure) {
    struct test *t = ctx;
    char cost[32] = "cost unknown";
    t->done = true;
    t->ok = r != NULL;
    if (!r) {
        *t->err = *failure;
        return;
    }
    if (!isnan(r->cost))
        snprintf(cost, sizeof cost, "$%.6f", r->cost);
    str text = str_trim(r->text);
    snprintf(t->found, t->n,
             "%s %s answered %zu bytes%s in %.2f s; %s%" PRIu64 " tokens in, %" PRIu64 " out, %s",
             t->provider->name, t->provider->model, text.n, r->cut ? " (cut)" : "", r->seconds,
             r->tokens_estimated ? "about " : "", r->tokens_in, r->tokens_out, cost);
}

bool doctor_call(const struct provider_options *o, char *found, size_t n, struct err *err) {
    struct provider p;
    struct test t = {.provider = &p, .found = found, .n = n, .err = err};
    struct provider_options own = *o;
    struct loop *l = loop_new(err);
    struct llm_request q = {.role = "doctor",
                            .candidate = UINT64_MAX,
                            .system = S("You answer with one word."),
                            .user = S("Say: ready"),
                            .max_tokens = REPLY_TOKENS};
    if (!l)
        return false;
    own.max_ms = own.max_ms ? own.max_ms : PATIENCE_MS;
    own.notice = on_notice;
    if (provider_new(l, &own, &p, err)) {
        p.ask(p.self, &q, on_answer, &t);
        while (!t.done && loop_step(l, -1, err))
            ;
        p.release(p.self);
    }
    loop_free(l);
    return t.ok;
}
