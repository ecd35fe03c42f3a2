/* A provider: the backend by its name, the price, the caps and the recorder, and over them its
 * calls: at most so many at a time, in the order they were asked, each tried until it is answered,
 * refused, out of patience or over a cap.
 *
 * A call is queued, running, paused (it waits before its next try) or ending (its error is about to
 * be told). A paused call keeps its place among those in flight, so an outage is probed by a few
 * calls while the others wait in the queue. Everything is told from the loop, never from ask(). */
#include "agent/llm/account.h"
#include "agent/llm/backend.h"
#include "agent/llm/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    REPLY_TOKENS = 16384,
    CONCURRENCY = 8,
    TIMEOUT_MS = 600000,
    TRIES = 4,              /* at an answer of some use */
    BACKOFF_MS = 1000,      /* before the second try, doubled for each after it */
    BACKOFF_MAX_MS = 60000, /* a server that is back is noticed within a minute */
    AWAY_MS = 3600000,      /* how long nobody may be there where no cap on time says it */
};

enum call_state { CALL_QUEUED, CALL_RUNNING, CALL_PAUSED, CALL_ENDING };

struct call {
    struct calls *calls;
    uint64_t number;
    enum call_state state;
    struct llm_request q; /* its texts are in memory of the call */
    llm_done_fn *done;
    void *ctx;
    uint64_t began_ms; /* its first try; 0: none yet */
    uint64_t away_ms;  /* since when nobody was there; 0: somebody is */
    unsigned tries, bad;
    void *attempt;
    uint64_t timer;
    struct reservation reserved;
    struct err err; /* of the last try; of CALL_ENDING: what is told */
    struct arena *arena;
    struct call *next;
};

struct calls {
    struct arena *arena; /* of it and of the options' strings */
    struct loop *loop;
    struct provider_options o;
    struct backend backend;
    struct recorder *recorder; /* NULL: none */
    struct price price;
    struct account *account;
    struct call *first, **last;
    uint64_t count, busy, pauses;
    uint64_t end_ms, timer;        /* the cap on time; 0: none */
    uint64_t away_ms, answered_ms; /* of any call: nobody there since, last answer at */
};

static void pump(struct calls *c);

static void notice(const struct calls *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void notice(const struct calls *c, const char *fmt, ...) {
    struct buf b;
    va_list ap;
    if (!c->o.notice)
        return;
    buf_init(&b, 8192);
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    c->o.notice(c->o.notice_ctx, buf_str(&b));
    buf_release(&b);
}

/* ---- a call's life ---- */

static struct call *call_new(struct calls *c, const struct llm_request *q) {
    struct arena *a = arena_new(SIZE_MAX / 4);
    struct call *call = arena_new_of(a, struct call);
    *call = (struct call){.calls = c, .number = ++c->count, .q = *q, .arena = a};
    call->q.role = arena_cstr(a, str_view(q->role));
    call->q.system = arena_str(a, q->system);
    call->q.user = arena_str(a, q->user);
    if (!call->q.max_tokens)
        call->q.max_tokens = c->o.max_reply_tokens;
    *c->last = call;
    c->last = &call->next;
    return call;
}

static void call_unlink(struct call *call) {
    struct calls *c = call->calls;
    struct call **at = &c->first;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (!call->next)
        c->last = at;
    c->busy -= call->state == CALL_RUNNING || call->state == CALL_PAUSED;
    loop_timer_cancel(c->loop, call->timer);
    account_settle(c->account, &call->reserved);
}

/* Unlinked before it is told: the callback may ask and cancel others. */
static void call_finish(struct call *call, const struct llm_reply *reply, const struct err *err) {
    struct calls *c = call->calls;
    struct err recording = {0};
    call_unlink(call);
    if (c->recorder && !recorder_put(c->recorder, &call->q, reply, err, &recording)) {
        reply = NULL;
        err = &recording;
    }
    call->done(call->ctx, reply, err);
    arena_free(call->arena);
    pump(c);
}

static void on_ending(void *ctx) {
    struct call *call = ctx;
    call->timer = 0;
    call_finish(call, NULL, &call->err);
}

/* Told with call->err, soon. */
static void call_end(struct call *call) {
    struct calls *c = call->calls;
    c->busy -= call->state == CALL_RUNNING || call->state == CALL_PAUSED;
    call->state = CALL_ENDING;
    loop_timer_cancel(c->loop, call->timer);
    call->timer = loop_timer(c->loop, 0, on_ending, call);
}

static void call_stop(struct call *call) {
    struct calls *c = call->calls;
    if (call->state != CALL_RUNNING)
        return;
    c->backend.abort(call->attempt);
    /* What it had come to is not known; the prompt was read. */
    uint64_t in = tokens_estimate(call->q.system.n + call->q.user.n);
    account_charge(c->account, &(struct charge){.role = call->q.role,
                                                .candidate = call->q.candidate,
                                                .tokens_in = in,
                                                .cost = price_cost(c->price, in, 0)});
}

/* ---- patience ---- */

static uint64_t backoff(struct calls *c, unsigned tries, uint64_t asked_ms) {
    double u = rng_unit(c->o.jitter, c->pauses++);
    uint64_t most = tries < 7 ? (uint64_t)BACKOFF_MS << (tries - 1) : BACKOFF_MAX_MS;
    most = most < BACKOFF_MAX_MS ? most : BACKOFF_MAX_MS;
    if (asked_ms)
        return asked_ms + (uint64_t)(u * 250);
    return (uint64_t)((double)most * (0.5 + 0.5 * u));
}

static void on_pause_over(void *ctx) {
    struct call *call = ctx;
    struct calls *c = call->calls;
    call->timer = 0;
    call->state = CALL_QUEUED;
    c->busy--;
    pump(c);
}

static void call_pause(struct call *call, uint64_t ms) {
    struct calls *c = call->calls;
    call->state = CALL_PAUSED;
    c->busy++;
    call->timer = loop_timer(c->loop, ms, on_pause_over, call);
}

/* The moment at which waiting for somebody ends. */
static uint64_t patience_end(const struct call *call) {
    uint64_t end = call->calls->end_ms;
    return end ? end : call->away_ms + AWAY_MS;
}

static void call_away(struct call *call, const struct attempt *a) {
    struct calls *c = call->calls;
    uint64_t now = clock_ms();
    call->away_ms = call->away_ms ? call->away_ms : now;
    /* Others were answered meanwhile: it is this request, not the server. */
    bool alone = c->answered_ms > call->away_ms;
    uint64_t wait = backoff(c, call->tries, a->wait_ms), end = patience_end(call);
    if (!a->wait_ms && now + wait >= end && now + BACKOFF_MS < end)
        wait = end - now - BACKOFF_MS / 2; /* one more, just before the end */
    err_set(&call->err, ERR_ENV, "%s: %s", c->o.kind, a->why);
    if ((alone && ++call->bad >= TRIES) || now + wait >= end) {
        err_wrap(&call->err, "gave up after %u tries in %" PRIu64 " s", call->tries,
                 (now - call->began_ms) / 1000);
        call_end(call);
        return;
    }
    if (!c->away_ms) {
        c->away_ms = now;
        notice(c, "%s: %s; paused, trying again in %.1f s, for up to %" PRIu64 " s", c->o.kind,
               a->why, (double)wait / 1000, (end - now) / 1000);
    }
    call_pause(call, wait);
}

static void call_bad(struct call *call, const struct attempt *a) {
    struct calls *c = call->calls;
    err_set(&call->err, ERR_ENV, "%s: %s", c->o.kind, a->why);
    if (++call->bad >= TRIES) {
        err_wrap(&call->err, "gave up after %u tries", call->tries);
        call_end(call);
        return;
    }
    uint64_t wait = backoff(c, call->bad, a->wait_ms);
    notice(c, "%s: %s %" PRIu64 ": %s; asking again in %.1f s (%u of %d tries)", c->o.kind,
           call->q.role, call->q.ordinal, a->why, (double)wait / 1000, call->bad + 1, TRIES);
    call_pause(call, wait);
}

/* ---- an attempt's end ---- */

static struct llm_reply reply_of(struct call *call, const struct attempt *a) {
    const struct calls *c = call->calls;
    struct llm_reply r = {.text = a->text,
                          .tokens_in = a->tokens_in,
                          .tokens_out = a->tokens_out,
                          .tokens_estimated = !a->counted,
                          .cost = a->cost,
                          .seconds = a->seconds,
                          .cut = a->cut};
    if (!a->counted && !a->recorded) {
        r.tokens_in = tokens_estimate(call->q.system.n + call->q.user.n);
        r.tokens_out = tokens_estimate(a->text.n);
    }
    if (!a->recorded) {
        r.cost = price_cost(c->price, r.tokens_in, r.tokens_out);
        r.seconds = (double)(clock_ms() - call->began_ms) / 1000;
    }
    return r;
}

static void call_answered(struct call *call, const struct llm_reply *r) {
    struct calls *c = call->calls;
    uint64_t now = clock_ms();
    if (c->away_ms)
        notice(c, "%s: answers again after %.1f s", c->o.kind, (double)(now - c->away_ms) / 1000);
    c->away_ms = 0;
    c->answered_ms = now;
    call->state = CALL_ENDING; /* its place is free for what the callback asks */
    call_finish(call, r, NULL);
}

static void on_attempt(void *ctx, const struct attempt *a) {
    struct call *call = ctx;
    struct calls *c = call->calls;
    struct llm_reply r = reply_of(call, a);
    c->busy--;
    call->state = CALL_QUEUED;
    account_settle(c->account, &call->reserved);
    if (a->used)
        account_charge(c->account, &(struct charge){.role = call->q.role,
                                                    .candidate = call->q.candidate,
                                                    .answered = a->end == ATTEMPT_ANSWERED,
                                                    .tokens_in = r.tokens_in,
                                                    .tokens_out = r.tokens_out,
                                                    .cost = r.cost});
    if (a->end == ATTEMPT_ANSWERED) {
        call_answered(call, &r);
        return;
    }
    if (a->end == ATTEMPT_AWAY) {
        call_away(call, a);
    } else if (a->end == ATTEMPT_BAD) {
        call->away_ms = 0;
        call_bad(call, a);
    } else {
        err_set(&call->err, a->kind, "%s: %s", c->o.kind, a->why);
        call_end(call);
    }
    pump(c);
}

/* ---- the queue ---- */

static void call_start(struct call *call) {
    struct calls *c = call->calls;
    call->began_ms = call->began_ms ? call->began_ms : clock_ms();
    call->tries++;
    call->state = CALL_RUNNING;
    c->busy++;
    call->attempt = c->backend.start(c->backend.self, &call->q, on_attempt, call, &call->err);
    if (!call->attempt) {
        account_settle(c->account, &call->reserved);
        call_end(call);
    }
}

static void pump(struct calls *c) {
    struct call *next;
    for (struct call *call = c->first; call && c->busy < c->o.concurrency; call = next) {
        next = call->next;
        if (call->state != CALL_QUEUED)
            continue;
        enum admission admit =
            account_admit(c->account, !call->tries, call->q.system.n + call->q.user.n,
                          call->q.max_tokens, &call->reserved, &call->err);
        if (admit == ADMIT_WAIT)
            return;
        if (admit == ADMIT_YES)
            call_start(call);
        else
            call_end(call);
    }
}

/* The cap on time: nothing is asked any more, and what is in flight is given up. */
static void on_time_up(void *ctx) {
    struct calls *c = ctx;
    c->timer = 0;
    for (struct call *call = c->first; call; call = call->next) {
        if (call->state == CALL_ENDING)
            continue;
        call_stop(call);
        if (call->away_ms)
            err_wrap(&call->err, "no model server answered before --max-model-time was used up");
        else
            err_set(&call->err, ERR_NO, "the cap on the models' time is reached");
        call_end(call);
    }
}

static uint64_t calls_ask(void *self, const struct llm_request *q, llm_done_fn *done, void *ctx) {
    struct calls *c = self;
    struct call *call = call_new(c, q);
    call->done = done;
    call->ctx = ctx;
    if (c->end_ms && clock_ms() >= c->end_ms) {
        err_set(&call->err, ERR_NO, "the cap on the models' time is reached");
        call_end(call);
    }
    pump(c);
    return call->number;
}

static void calls_cancel(void *self, uint64_t number) {
    struct calls *c = self;
    struct call *call = c->first;
    while (call && call->number != number)
        call = call->next;
    if (!call)
        return;
    call_stop(call);
    call_unlink(call);
    arena_free(call->arena);
    pump(c);
}

static json *calls_account(void *self) {
    return account_json(((struct calls *)self)->account);
}

static void calls_release(void *self) {
    struct calls *c = self;
    c->o.concurrency = 0; /* what is cancelled makes room for nothing */
    while (c->first)
        calls_cancel(c, c->first->number);
    loop_timer_cancel(c->loop, c->timer);
    c->backend.release(c->backend.self);
    account_free(c->account);
    recorder_close(c->recorder);
    arena_free(c->arena);
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
                   "unknown provider '%s': there are openai, anthropic, command and replay",
                   o->kind);
}

bool provider_new(struct loop *l, const struct provider_options *o, struct provider *out,
                  struct err *err) {
    struct arena *a = arena_new(4 << 20);
    struct calls *c = arena_new_of(a, struct calls);
    *c = (struct calls){.arena = a, .loop = l, .o = own_options(a, o), .last = &c->first};
    bool opened = backend_open(l, &c->o, &c->backend, err);
    bool ok = opened && find_price(&c->o, !strcmp(c->o.kind, "replay"), &c->price, err);
    if (ok && c->o.record)
        ok = (c->recorder = recorder_open(c->o.record, c->o.kind, c->o.model, err)) != NULL;
    if (!ok) {
        if (opened)
            c->backend.release(c->backend.self);
        arena_free(a);
        return err_wrap(err, "model provider");
    }
    c->account = account_new((struct caps){o->max_cost, o->max_tokens, o->max_calls}, c->price);
    if (o->max_ms) {
        c->end_ms = clock_ms() + o->max_ms;
        c->timer = loop_timer(l, o->max_ms, on_time_up, c);
    }
    *out = (struct provider){.name = c->o.kind,
                             .model = c->o.model,
                             .self = c,
                             .ask = calls_ask,
                             .cancel = calls_cancel,
                             .account = calls_account,
                             .release = calls_release};
    return true;
}
