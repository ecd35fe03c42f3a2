/* From options to a provider: the backend by its name, the price, the caps, the recorder, and the
 * calls over them. */
#include "agent/llm/calls.h"

#include "base/asset.h"

#include <math.h>
#include <string.h>

enum { REPLY_TOKENS = 16384, CONCURRENCY = 8, TIMEOUT_MS = 600000 };

struct stack {
    struct arena *arena; /* of the options' strings */
    struct calls *calls;
};

static uint64_t provider_ask(void *self, const struct llm_request *q, llm_done_fn *done,
                             void *ctx) {
    return calls_ask(((struct stack *)self)->calls, q, done, ctx);
}

static void provider_cancel(void *self, uint64_t call) {
    calls_cancel(((struct stack *)self)->calls, call);
}

static json *provider_account(void *self) {
    return calls_account(((struct stack *)self)->calls);
}

static void provider_release(void *self) {
    struct stack *s = self;
    calls_free(s->calls);
    arena_free(s->arena);
}

/* ---- options ---- */

static const char *kept(struct arena *a, const char *s) {
    return s ? arena_cstr(a, str_view(s)) : NULL;
}

static struct provider_options own_options(struct arena *a, const struct provider_options *o) {
    struct provider_options own = *o;
    own.kind = kept(a, o->kind);
    own.model = kept(a, o->model);
    own.url = kept(a, o->url);
    own.key_file = kept(a, o->key_file);
    own.command = kept(a, o->command);
    own.record = kept(a, o->record);
    own.max_reply_tokens = o->max_reply_tokens ? o->max_reply_tokens : REPLY_TOKENS;
    own.concurrency = o->concurrency ? o->concurrency : CONCURRENCY;
    own.timeout_ms = o->timeout_ms ? o->timeout_ms : TIMEOUT_MS;
    return own;
}

static bool find_price(const struct provider_options *o, bool replay, struct price *out,
                       struct err *err) {
    if (!price_find(o->assets, str_view(o->model), out, err))
        return false;
    out->in = o->price_in >= 0 ? o->price_in : out->in;
    out->out = o->price_out >= 0 ? o->price_out : out->out;
    bool known = !isnan(out->in) && !isnan(out->out);
    if (!known && replay)
        *out = (struct price){0, 0}; /* what was paid is in the recording */
    else if (!known && o->max_cost > 0)
        return err_set(err, ERR_INPUT,
                       "--max-cost: the price of %s is not known\nhint: give --price-in and "
                       "--price-out, in dollars a million tokens",
                       o->model);
    return true;
}

/* ---- the kinds ---- */

static bool backend_open(struct loop *l, struct provider_options *o, struct backend *out,
                         struct err *err) {
    static const struct {
        const char *name;
        bool (*open)(struct loop *, const struct provider_options *, struct backend *,
                     struct err *);
    } kinds[] = {{"openai", remote_open}, {"anthropic", remote_open}, {"command", command_open}};
    if (!o->kind)
        return err_set(err, ERR_INPUT, "no model provider is named; give --provider");
    if (!strcmp(o->kind, "replay"))
        return replay_open(l, o, out, &o->model, err);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(o->kind, kinds[i].name)) {
            o->model = o->model || kinds[i].open == remote_open ? o->model : "command";
            return kinds[i].open(l, o, out, err);
        }
    return err_set(err, ERR_INPUT,
                   "no provider '%s': openai, anthropic, command and replay are known", o->kind);
}

static bool stack_open(struct loop *l, struct stack *s, struct provider_options *o,
                       struct err *err) {
    struct calls_options c = {.loop = l,
                              .name = o->kind,
                              .caps = {o->max_cost, o->max_tokens, o->max_calls},
                              .max_ms = o->max_ms,
                              .max_reply_tokens = o->max_reply_tokens,
                              .concurrency = o->concurrency,
                              .jitter = o->jitter,
                              .notice = o->notice,
                              .notice_ctx = o->notice_ctx};
    if (!backend_open(l, o, &c.backend, err))
        return false;
    bool ok = find_price(o, !strcmp(o->kind, "replay"), &c.price, err);
    if (ok && o->record)
        ok = (c.recorder = recorder_open(o->record, o->kind, o->model, err)) != NULL;
    if (!ok) {
        c.backend.release(c.backend.self);
        return false;
    }
    s->calls = calls_new(&c);
    return true;
}

bool provider_new(struct loop *l, const struct provider_options *o, struct provider *out,
                  struct err *err) {
    struct arena *a = arena_new(4 << 20);
    struct stack *s = arena_new_of(a, struct stack);
    struct provider_options own = own_options(a, o);
    s->arena = a;
    if (!stack_open(l, s, &own, err)) {
        arena_free(a);
        return err_wrap(err, "model provider");
    }
    *out = (struct provider){.name = own.kind,
                             .model = own.model,
                             .self = s,
                             .ask = provider_ask,
                             .cancel = provider_cancel,
                             .account = provider_account,
                             .release = provider_release};
    return true;
}
