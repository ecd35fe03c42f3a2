#include "search/archived.h"
#include "agent/llm/account.h"
#include "agent/llm/record.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CALL_MAX ((size_t)64 << 20)

struct archived {
    struct provider inner;
    struct archive *archive;
    struct open_call *open;
    size_t replayed;
};

struct open_call {
    struct archived *p;
    struct open_call *next;
    uint64_t number; /* of the inner provider */
    struct arena *mem;
    struct archive_call call;
    llm_done_fn *done;
    void *ctx;
};

static void open_free(struct open_call *o) {
    struct open_call **at = &o->p->open;
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    arena_free(o->mem);
    mem_free(o);
}

/* The row is written before the answer is acted on: what was paid for is never asked again. */
static void on_reply(void *ctx, const struct llm_reply *reply, const struct err *err) {
    struct open_call *o = ctx;
    llm_done_fn *done = o->done;
    void *to = o->ctx;
    struct err failed = {0};
    if (reply) {
        o->call.reply = reply->text;
        o->call.tokens_in = reply->tokens_in;
        o->call.tokens_out = reply->tokens_out;
        o->call.cost = reply->cost;
        o->call.seconds = reply->seconds;
        o->call.cut = reply->cut;
        if (!archive_add_call(o->p->archive, &o->call, &failed)) {
            reply = NULL;
            err = &failed;
        }
    }
    open_free(o);
    done(to, reply, err);
}

static void answer_recorded(const struct archive_call *c, llm_done_fn *done, void *ctx) {
    struct llm_reply r = {.text = c->reply,
                          .tokens_in = c->tokens_in,
                          .tokens_out = c->tokens_out,
                          .cost = c->cost,
                          .seconds = c->seconds,
                          .cut = c->cut};
    done(ctx, &r, NULL);
}

static struct open_call *open_new(struct archived *p, const struct llm_request *q,
                                  const char *hash) {
    struct open_call *o = mem_alloc(sizeof *o);
    *o = (struct open_call){.p = p, .next = p->open, .mem = arena_new(CALL_MAX)};
    o->call = (struct archive_call){.role = arena_str(o->mem, str_view(q->role)),
                                    .model = str_view(p->inner.model),
                                    .ordinal = q->ordinal,
                                    .candidate = q->candidate,
                                    .system = arena_str(o->mem, q->system),
                                    .user = arena_str(o->mem, q->user)};
    memcpy(o->call.prompt_hash, hash, sizeof o->call.prompt_hash);
    p->open = o;
    return o;
}

static uint64_t archived_ask(void *self, const struct llm_request *q, llm_done_fn *done,
                             void *ctx) {
    struct archived *p = self;
    struct arena *mem = arena_new(CALL_MAX);
    struct archive_call known;
    struct err err = {0};
    char hash[65];
    prompt_hash(q->system, q->user, hash);
    int found = archive_find_call(p->archive, q->role, q->ordinal, hash, mem, &known, &err);
    p->replayed += found == 1;
    if (found == 1)
        answer_recorded(&known, done, ctx);
    else if (found < 0)
        done(ctx, NULL, &err);
    arena_free(mem);
    if (found != 0)
        return 0;
    struct open_call *o = open_new(p, q, hash);
    o->done = done;
    o->ctx = ctx;
    uint64_t number = p->inner.ask(p->inner.self, q, on_reply, o);
    if (number)
        o->number = number;
    return number;
}

static void archived_cancel(void *self, uint64_t call) {
    struct archived *p = self;
    struct open_call *o = p->open;
    while (o && o->number != call)
        o = o->next;
    p->inner.cancel(p->inner.self, call);
    if (o)
        open_free(o);
}

static json *archived_account(void *self) {
    struct archived *p = self;
    return p->inner.account(p->inner.self);
}

static void archived_release(void *self) {
    struct archived *p = self;
    while (p->open)
        archived_cancel(p, p->open->number);
    mem_free(p);
}

size_t archived_replayed(const struct provider *p) {
    return ((const struct archived *)p->self)->replayed;
}

void archived_provider(const struct provider *inner, struct archive *a, struct provider *out) {
    struct archived *p = mem_alloc(sizeof *p);
    *p = (struct archived){.inner = *inner, .archive = a};
    *out = (struct provider){.name = inner->name,
                             .model = inner->model,
                             .self = p,
                             .ask = archived_ask,
                             .cancel = archived_cancel,
                             .account = archived_account,
                             .release = archived_release};
}

static void charge(void *ctx, const struct archive_call *c) {
    char role[32];
    snprintf(role, sizeof role, "%.*s", STR_ARG(c->role));
    account_charge(ctx, &(struct charge){.role = role,
                                         .candidate = c->candidate,
                                         .answered = true,
                                         .tokens_in = c->tokens_in,
                                         .tokens_out = c->tokens_out,
                                         .cost = c->cost});
}

json *archived_spent(struct archive *a, struct err *err) {
    struct account *sum = account_new((struct caps){0}, (struct price){NAN, NAN});
    json *j = archive_each_call(a, charge, sum, err) ? account_json(sum) : NULL;
    account_free(sum);
    return j;
}
