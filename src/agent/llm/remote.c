/* A model server: a dialect over HTTP, with a key. What the server says is judged here: an answer,
 * something of no use, nobody there, or a refusal. */
#include "agent/llm/backend.h"
#include "agent/llm/dialect.h"
#include "agent/llm/http.h"
#include "agent/llm/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    CONNECT_MS = 30000,
    STALLS = 5,              /* a stall is this fraction of a call's time */
    BODY_BYTES = 1 << 20,    /* of any answer, and beside it … */
    BODY_TOKEN_BYTES = 2048, /* … for each token of a stream, whose frame is most of it */
};

struct remote {
    struct loop *loop;
    struct http *http;
    const struct dialect *dialect;
    struct key key;
    struct arena *arena;
    const char *url, *model;
    double temperature;
    uint64_t timeout_ms, count;
    struct buf key_header;
    struct quirks quirks; /* of this server and model, as found out */
    struct try *tries;
};

struct try {
    struct remote *remote;
    uint64_t number, post;
    struct quirks quirks; /* that it was asked with */
    const struct llm_request *q;
    attempt_fn *done;
    void *ctx;
    struct try *next;
};

static void try_free(struct try *t) {
    struct try **at = &t->remote->tries;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    mem_free(t);
}

/* What a server wrote may hold the key. */
static void try_end(struct try *t, struct attempt *a, const char *why) {
    struct remote *r = t->remote;
    struct buf line, text;
    attempt_fn *done = t->done;
    void *ctx = t->ctx;
    buf_init(&line, 4096);
    buf_init(&text, 4 * ANSWER_MAX_TEXT);
    key_scrub(&r->key, str_view(why), &line);
    key_scrub(&r->key, a->text, &text);
    a->why = line.p ? line.p : "";
    a->text = buf_str(&text);
    try_free(t);
    done(ctx, a);
    buf_release(&line);
    buf_release(&text);
}

/* ---- judging what came ---- */

static const char *const half[] = {
    [HTTP_WHOLE] = "half an answer: the server ended it early",
    [HTTP_BROKEN] = "half an answer: the connection broke off",
    [HTTP_STALLED] = "half an answer: it stopped coming",
    [HTTP_LATE] = "half an answer: it took too long",
    [HTTP_TOO_LARGE] = "the answer is larger than any answer of the allowed length",
    [HTTP_UNREACHABLE] = "the connection broke off",
    [HTTP_UNSAFE] = "the connection is not to be trusted",
    [HTTP_NO_URL] = "the URL cannot be asked",
};

static bool is_type(const struct http_answer *h, const char *type) {
    size_t n = strlen(type);
    const char *rest = h->content_type + n;
    return !strncasecmp(h->content_type, type, n) && (!*rest || *rest == ';' || *rest == ' ');
}

static void end_answer(struct try *t, const struct http_answer *h) {
    struct answer said;
    struct attempt a = {.end = ATTEMPT_BAD, .used = true, .wait_ms = h->wait_ms};
    char why[640];
    bool stream = is_type(h, "text/event-stream"), plain = is_type(h, "application/json");
    answer_init(&said);
    if (stream)
        dialect_read_stream(t->remote->dialect, h->body, &said);
    else if (plain && h->end == HTTP_WHOLE)
        dialect_read_body(t->remote->dialect, h->body, &said);
    snprintf(why, sizeof why, "%s", said.failed ? said.why : half[h->end]);
    if (!stream && !plain) {
        a.used = false; /* no model writes that */
        snprintf(why, sizeof why, "the answer is of type %s, not JSON or events: is the URL right?",
                 *h->content_type ? h->content_type : "unknown");
    }
    a.text = buf_str(&said.text);
    a.tokens_in = said.tokens_in;
    a.tokens_out = said.tokens_out;
    a.counted = said.counted;
    a.cut = said.cut;
    if (said.failed)
        a.end = said.exhausted ? ATTEMPT_REFUSED : said.busy ? ATTEMPT_AWAY : ATTEMPT_BAD;
    else if (said.ended)
        a.end = ATTEMPT_ANSWERED;
    a.kind = ERR_ENV;
    try_end(t, &a, why);
    answer_release(&said);
}

static bool is_busy(long status) {
    return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504) ||
           status == 529;
}

static bool try_send(struct try *t, struct err *err);

/* The same once more without what the server does not know. */
static bool try_adapt(struct try *t, const struct http_answer *h, const char *message) {
    struct remote *r = t->remote;
    struct err err;
    if ((h->status != 400 && h->status != 422) || !r->dialect->adapt(str_view(message), &t->quirks))
        return false;
    r->quirks.other_limit |= t->quirks.other_limit;
    r->quirks.no_usage |= t->quirks.no_usage;
    r->quirks.no_temperature |= t->quirks.no_temperature;
    return try_send(t, &err);
}

static void end_status(struct try *t, const struct http_answer *h) {
    struct attempt a = {.end = ATTEMPT_REFUSED, .kind = ERR_INPUT, .wait_ms = h->wait_ms};
    struct answer said;
    struct err none;
    char message[512], why[640];
    dialect_error_line(h->body, message, sizeof message);
    if (try_adapt(t, h, message))
        return;
    answer_init(&said);
    json *j = json_parse(h->body, &none);
    answer_read_error(j, &said);
    json_free(j);
    if (is_busy(h->status) && !said.exhausted)
        a.end = ATTEMPT_AWAY;
    else if (h->status >= 500 || said.exhausted)
        a.kind = ERR_ENV;
    answer_release(&said);
    if (h->status == 401) /* some servers tell parts of the key here */
        snprintf(message, sizeof message, "the key is missing or refused");
    else if (h->status >= 300 && h->status < 400)
        snprintf(message, sizeof message, "redirects are not followed: name the final URL");
    snprintf(why, sizeof why, "HTTP %ld%s%s", h->status, *message ? ": " : "", message);
    try_end(t, &a, why);
}

static void on_http(void *ctx, const struct http_answer *h) {
    struct try *t = ctx;
    struct attempt a = {.end = ATTEMPT_BAD};
    t->post = 0;
    if (h->status >= 200 && h->status < 300) {
        end_answer(t, h);
    } else if (h->status) {
        end_status(t, h);
    } else {
        bool never = h->end == HTTP_UNSAFE || h->end == HTTP_NO_URL;
        a.end = h->end == HTTP_UNREACHABLE ? ATTEMPT_AWAY : never ? ATTEMPT_REFUSED : ATTEMPT_BAD;
        a.kind = h->end == HTTP_NO_URL ? ERR_INPUT : ERR_ENV;
        try_end(t, &a, h->why);
    }
}

/* ---- asking ---- */

static bool try_send(struct try *t, struct err *err) {
    struct remote *r = t->remote;
    struct dialect_request d = {.model = r->model,
                                .system = t->q->system,
                                .user = t->q->user,
                                .max_tokens = t->q->max_tokens,
                                .temperature = r->temperature,
                                .quirks = t->quirks};
    const char *headers[5] = {"Content-Type: application/json",
                              "Accept: text/event-stream, application/json", "Expect:"};
    size_t n = 3;
    if (r->key_header.n)
        headers[n++] = r->key_header.p;
    if (r->dialect->header)
        headers[n++] = r->dialect->header;
    struct buf body;
    buf_init(&body, SIZE_MAX / 2);
    dialect_write(r->dialect, &d, &body);
    struct http_request q = {.url = r->url, .headers = headers, .nheaders = n};
    q.body = buf_str(&body);
    q.direct = r->key.here;
    q.connect_ms = r->timeout_ms < CONNECT_MS ? r->timeout_ms : CONNECT_MS;
    q.total_ms = r->timeout_ms;
    q.stall_ms = r->timeout_ms / STALLS;
    uint64_t tokens = t->q->max_tokens < 1 << 20 ? t->q->max_tokens : 1 << 20;
    q.max_bytes = BODY_BYTES + (size_t)tokens * BODY_TOKEN_BYTES;
    t->post = http_post(r->http, &q, on_http, t, err);
    buf_release(&body);
    return t->post != 0;
}

static uint64_t remote_start(void *self, const struct llm_request *q, attempt_fn *done, void *ctx,
                             struct err *err) {
    struct remote *r = self;
    struct try *t = mem_alloc(sizeof *t);
    *t = (struct try){.remote = r, .number = ++r->count, .q = q, .done = done, .ctx = ctx};
    t->quirks = r->quirks;
    t->next = r->tries;
    r->tries = t;
    if (try_send(t, err))
        return t->number;
    try_free(t);
    return 0;
}

static void remote_abort(void *self, uint64_t number) {
    struct remote *r = self;
    struct try *t = r->tries;
    while (t && t->number != number)
        t = t->next;
    if (!t)
        return;
    http_cancel(r->http, t->post);
    try_free(t);
}

static void remote_release(void *self) {
    struct remote *r = self;
    http_free(r->http);
    while (r->tries)
        try_free(r->tries);
    key_release(&r->key);
    if (r->key_header.p)
        explicit_bzero(r->key_header.p, r->key_header.cap);
    buf_release(&r->key_header);
    arena_free(r->arena);
}

/* ---- opening ---- */

/* Below a URL as people write them: with or without a slash at its end, with the version or even
 * the whole path. */
static const char *full_url(struct arena *a, const struct dialect *d, const char *url) {
    str base = str_view(url), path = str_view(d->path);
    while (str_ends(base, S("/")))
        base.n--;
    if (str_ends(base, path))
        path.n = 0;
    else if (str_ends(base, S("/v1")) && str_starts(path, S("/v1/")))
        path = str_from(path, 3);
    return arena_printf(a, "%.*s%.*s", STR_ARG(base), STR_ARG(path)).p;
}

static bool find_key(struct remote *r, const struct provider_options *o, struct err *err) {
    char note[256];
    buf_init(&r->key_header, 16384);
    if (!key_find(&r->key, r->url, o->key_file, note, err))
        return false;
    if (*note && o->notice)
        o->notice(o->notice_ctx, str_view(note));
    if (r->key.bytes.n) {
        buf_puts(&r->key_header, str_view(r->dialect->key_header));
        buf_puts(&r->key_header, buf_str(&r->key.bytes));
    }
    return true;
}

bool remote_open(struct loop *l, const struct provider_options *o, struct backend *out,
                 struct err *err) {
    const struct dialect *d = dialect_named(o->kind);
    BUG_IF(!d);
    if (!o->model || !*o->model)
        return err_set(err, ERR_INPUT, "%s: name the model with --model", o->kind);
    struct arena *a = arena_new(1 << 20);
    struct remote *r = arena_new_of(a, struct remote);
    *r = (struct remote){.loop = l, .dialect = d, .arena = a, .model = o->model};
    r->url = full_url(a, d, o->url ? o->url : d->url);
    r->temperature = o->temperature;
    r->timeout_ms = o->timeout_ms;
    if (find_key(r, o, err) && (r->http = http_new(l, err))) {
        *out = (struct backend){r, remote_start, remote_abort, remote_release};
        return true;
    }
    remote_release(r);
    return false;
}
