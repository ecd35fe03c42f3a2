/* What tests of providers share: the protocol test server, a provider with its notices collected,
 * calls that can be waited for. */
#ifndef TESTS_AGENT_LLM_FIXTURE_H
#define TESTS_AGENT_LLM_FIXTURE_H

#include "agent/llm/provider.h"
#include "base/child.h"
#include "base/file.h"
#include "tap.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define SECRET "sk-test-0123456789abcdefghijklmnop"

static struct loop *loop;
static struct err err;

/* ---- the server ---- */

static struct child server;
static int server_stdin = -1, server_port;

/* certificate and key: NULL without TLS */
static bool server_start(const char *certificate, const char *key) {
    char path[1024], line[32] = "";
    int in[2], out[2];
    const char *root = getenv("SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/tests/agent/llm/server", root ? root : ".");
    const char *argv[] = {path, certificate, key, NULL};
    if (!pipe_pair(in, &err) || !pipe_pair(out, &err))
        return false;
    struct child_fd fds[] = {{in[0], 0}, {out[1], 1}, {2, 2}};
    bool ok = child_start(&(struct child_spec){.argv = argv, .fds = fds, .nfds = 3}, &server, &err);
    close(in[0]);
    close(out[1]);
    server_stdin = in[1];
    ok = ok && read(out[0], line, sizeof line - 1) > 0;
    close(out[0]);
    server_port = (int)strtol(line, NULL, 10);
    return ok && server_port > 0;
}

static void server_stop(void) {
    if (server_stdin < 0)
        return;
    close(server_stdin);
    server_stdin = -1;
    child_wait(&server);
}

/* NULL where these tests can run. */
static const char *fixture_open(void) {
    signal(SIGPIPE, SIG_IGN);
    if (!loop && !(loop = loop_new(&err)))
        return "no event loop";
    if (!dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL))
        return "libcurl.so.4 is missing";
    if (server_stdin < 0 && !server_start(NULL, NULL))
        CHECKF(false, "the test server does not start: %s", err.text);
    return NULL;
}

/* ---- a provider under test ---- */

struct subject {
    struct provider provider;
    struct buf notices; /* one a line */
};

static void on_notice(void *ctx, str text) {
    struct subject *s = ctx;
    buf_puts(&s->notices, text);
    buf_putc(&s->notices, '\n');
}

static inline struct provider_options options_of(const char *kind) {
    return (struct provider_options){.kind = kind,
                                     .model = "m",
                                     .price_in = 1,
                                     .price_out = 10,
                                     .max_reply_tokens = 100,
                                     .temperature = NAN,
                                     .timeout_ms = 20000,
                                     .jitter = rng_stream(1, S("test"))};
}

static bool subject_open(struct subject *s, struct provider_options o) {
    memset(s, 0, sizeof *s);
    buf_init(&s->notices, 1 << 20);
    o.notice = on_notice;
    o.notice_ctx = s;
    err = (struct err){0};
    return provider_new(loop, &o, &s->provider, &err);
}

/* Of the server's way to behave. */
static inline bool subject_at(struct subject *s, struct provider_options o, const char *way) {
    char url[128];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s%s", server_port, way,
             !strcmp(o.kind, "openai") ? "/v1" : "");
    o.url = url;
    return subject_open(s, o);
}

static void subject_close(struct subject *s) {
    if (s->provider.release)
        s->provider.release(s->provider.self);
    buf_release(&s->notices);
}

static inline bool noticed(const struct subject *s, const char *what) {
    str text = buf_str(&s->notices);
    return str_find(text, str_view(what)) < text.n;
}

/* ---- a call ---- */

struct outcome {
    int done; /* how often it was told */
    struct llm_reply reply;
    struct buf text;
    struct err err;
    uint64_t at_ms;
};

static void on_done(void *ctx, const struct llm_reply *reply, const struct err *failure) {
    struct outcome *o = ctx;
    CHECK((reply != NULL) != (failure != NULL));
    buf_init(&o->text, 1 << 26);
    o->done++;
    o->at_ms = clock_ms();
    if (reply) {
        o->reply = *reply;
        buf_puts(&o->text, reply->text);
    } else {
        o->err = *failure;
    }
}

static inline struct llm_request request_of(const char *role, uint64_t ordinal, const char *user) {
    return (struct llm_request){.role = role,
                                .ordinal = ordinal,
                                .candidate = UINT64_MAX,
                                .system = S("You are terse."),
                                .user = str_view(user)};
}

static uint64_t ask(struct subject *s, const char *role, uint64_t ordinal, const char *user,
                    struct outcome *o) {
    struct llm_request q = request_of(role, ordinal, user);
    memset(o, 0, sizeof *o);
    return s->provider.ask(s->provider.self, &q, on_done, o);
}

static bool wait_for(struct outcome *o, size_t n, uint64_t limit_ms) {
    uint64_t end = clock_ms() + limit_ms;
    for (;;) {
        size_t done = 0;
        for (size_t i = 0; i < n; i++)
            done += o[i].done > 0;
        if (done == n)
            return true;
        if (clock_ms() >= end || !loop_step(loop, 100, &err))
            return false;
    }
}

static inline bool said(const struct outcome *o, const char *text) {
    return o->done == 1 && !o->err.kind && str_is(buf_str(&o->text), text);
}

static inline int64_t account_of(struct subject *s, const char *name) {
    json *j = s->provider.account(s->provider.self);
    int64_t n = -1;
    json_get_i64(j, name, &n);
    json_free(j);
    return n;
}

#endif
