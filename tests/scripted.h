/* A provider that answers from a list, in order, and keeps what it was asked. Late: the answers
 * come from the loop, in reverse order of the requests that are open. */
#ifndef TESTS_SCRIPTED_H
#define TESTS_SCRIPTED_H

#include "agent/llm/provider.h"
#include "tap.h"

enum { SCRIPT_MOST = 256 };

struct script_entry {
    const char *role;  /* that must ask; NULL: any */
    const char *reply; /* NULL: the provider fails with `fail` */
    enum err_kind fail;
};

struct script_asked {
    char role[16];
    uint64_t ordinal;
    str system, user; /* in `mem` */
};

struct script_open {
    struct scripted *s;
    size_t entry;
    llm_done_fn *done;
    void *ctx;
    bool cancelled;
};

struct scripted {
    struct arena *mem;
    struct loop *late; /* NULL: answers before ask() returns */
    const struct script_entry *entries;
    size_t n, at;
    struct script_asked asked[SCRIPT_MOST];
    size_t nasked, bytes; /* bytes: of all requests */
    struct script_open open[SCRIPT_MOST];
    size_t nopen, cancelled, most_open;
};

static void script_answer(struct scripted *s, size_t entry, llm_done_fn *done, void *ctx) {
    struct err err = {0};
    const struct script_entry *e = entry < s->n ? &s->entries[entry] : NULL;
    if (!e || !e->reply) {
        err_set(&err, e ? e->fail : ERR_NO, "the script has ended");
        done(ctx, NULL, &err);
        return;
    }
    struct llm_reply r = {.text = str_view(e->reply), .tokens_in = 1, .tokens_out = 1};
    done(ctx, &r, NULL);
}

static void script_fire(void *ctx) {
    struct scripted *s = ctx;
    while (s->nopen) {
        struct script_open o = s->open[--s->nopen];
        if (!o.cancelled)
            script_answer(s, o.entry, o.done, o.ctx);
    }
}

static uint64_t script_ask(void *self, const struct llm_request *q, llm_done_fn *done, void *ctx) {
    struct scripted *s = self;
    struct script_asked *a = &s->asked[s->nasked++];
    size_t entry = s->at++;
    snprintf(a->role, sizeof a->role, "%s", q->role);
    a->ordinal = q->ordinal;
    a->system = arena_str(s->mem, q->system);
    a->user = arena_str(s->mem, q->user);
    s->bytes += q->system.n + q->user.n;
    if (entry < s->n && s->entries[entry].role)
        CHECKF(!strcmp(s->entries[entry].role, q->role), "request %zu is the %s's", entry, q->role);
    if (!s->late) {
        script_answer(s, entry, done, ctx);
        return 0;
    }
    if (!s->nopen)
        loop_timer(s->late, 1, script_fire, s);
    s->open[s->nopen++] = (struct script_open){s, entry, done, ctx, false};
    s->most_open = s->nopen > s->most_open ? s->nopen : s->most_open;
    return s->nopen;
}

static void script_cancel(void *self, uint64_t call) {
    struct scripted *s = self;
    s->open[call - 1].cancelled = true;
    s->cancelled++;
}

static json *script_account(void *self) {
    (void)self;
    return json_object();
}

static void script_release(void *self) {
    (void)self;
}

static struct provider script_provider(struct scripted *s, struct arena *mem,
                                       const struct script_entry *entries, size_t n) {
    *s = (struct scripted){.mem = mem, .entries = entries, .n = n};
    return (struct provider){"scripted",     "script",      s, script_ask, script_cancel,
                             script_account, script_release};
}

/* Whether request i was told this. */
static bool script_told(const struct scripted *s, size_t i, const char *text) {
    return i < s->nasked && (str_find(s->asked[i].user, str_view(text)) < s->asked[i].user.n ||
                             str_find(s->asked[i].system, str_view(text)) < s->asked[i].system.n);
}

#endif
