/* A model server: a dialect over HTTP, with a key. Posts go over libcurl, several in flight: its
 * multi interface says which descriptors and which time it waits for, and our loop watches them.
 * What the server says is judged here: an answer, something of no use, nobody there, or a refusal.
 * Callbacks of ours run after libcurl has returned, never from within it, so they may start and
 * abort as they like.
 *
 * libcurl.so.4 is opened when it is first needed: the program does not link it. The body is
 * collected up to a ceiling. TLS certificates are verified, against libcurl's own store or the file
 * that CURL_CA_BUNDLE or SSL_CERT_FILE names. Redirects are not followed, since a key would travel
 * with them. Nothing of a request is ever printed. */
#include "agent/llm/backend.h"
#include "agent/llm/dialect.h"
#include "agent/llm/key.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    CONNECT_MS = 30000,
    STALLS = 5,              /* a stall is this fraction of a call's time */
    BODY_BYTES = 1 << 20,    /* of any answer, and beside it … */
    BODY_TOKEN_BYTES = 2048, /* … for each token of a stream, whose frame is most of it */
};

#define CURL_FUNCTIONS(FUNCTION)                                                                   \
    FUNCTION(CURLcode, global_init, "curl_global_init", (long))                                    \
    FUNCTION(CURL *, easy_init, "curl_easy_init", (void))                                          \
    FUNCTION(CURLcode, set, "curl_easy_setopt", (CURL *, CURLoption, ...))                         \
    FUNCTION(CURLcode, info, "curl_easy_getinfo", (CURL *, CURLINFO, ...))                         \
    FUNCTION(void, easy_cleanup, "curl_easy_cleanup", (CURL *))                                    \
    FUNCTION(const char *, error_text, "curl_easy_strerror", (CURLcode))                           \
    FUNCTION(struct curl_slist *, list_add, "curl_slist_append",                                   \
             (struct curl_slist *, const char *))                                                  \
    FUNCTION(void, list_free, "curl_slist_free_all", (struct curl_slist *))                        \
    FUNCTION(time_t, date, "curl_getdate", (const char *, const time_t *))                         \
    FUNCTION(CURLM *, multi_init, "curl_multi_init", (void))                                       \
    FUNCTION(CURLMcode, multi_set, "curl_multi_setopt", (CURLM *, CURLMoption, ...))               \
    FUNCTION(CURLMcode, multi_add, "curl_multi_add_handle", (CURLM *, CURL *))                     \
    FUNCTION(CURLMcode, multi_remove, "curl_multi_remove_handle", (CURLM *, CURL *))               \
    FUNCTION(CURLMcode, multi_act, "curl_multi_socket_action",                                     \
             (CURLM *, curl_socket_t, int, int *))                                                 \
    FUNCTION(CURLMsg *, multi_read, "curl_multi_info_read", (CURLM *, int *))                      \
    FUNCTION(CURLMcode, multi_cleanup, "curl_multi_cleanup", (CURLM *))

struct curl {
#define FUNCTION(type, member, symbol, parameters) type(*member) parameters;
    CURL_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

struct remote {
    struct curl curl;
    struct loop *loop;
    CURLM *multi;
    uint64_t timer; /* libcurl's */
    const struct dialect *dialect;
    struct key key;
    struct arena *arena;
    const char *url, *model;
    double temperature;
    uint64_t timeout_ms;
    struct buf key_header;
    struct quirks quirks; /* of this server and model, as found out */
};

struct try {
    struct remote *remote;
    struct quirks quirks; /* that it was asked with */
    const struct llm_request *q;
    attempt_fn *done;
    void *ctx;
    /* The post under way, or none. */
    CURL *easy;
    struct curl_slist *headers;
    struct buf sent, got;
    uint64_t began_ms, last_ms, timer; /* last: of a byte */
    uint64_t wait_ms;                  /* Retry-After; 0: not said */
    char error[CURL_ERROR_SIZE];
};

enum http_end {
    HTTP_WHOLE,       /* an answer with a status */
    HTTP_UNREACHABLE, /* no connection, or it broke before any answer */
    HTTP_UNSAFE,      /* no connection that may be used: its certificate is not trusted */
    HTTP_NO_URL,      /* the URL is none that can be asked */
    HTTP_BROKEN,      /* it broke off within the answer */
    HTTP_STALLED,     /* nothing came for too long */
    HTTP_LATE,        /* it took too long in all */
    HTTP_TOO_LARGE,
};

struct http_answer {
    enum http_end end;
    long status; /* 0: none came */
    char content_type[128];
    uint64_t wait_ms;
    str body;      /* what came of it */
    char why[256]; /* unless HTTP_WHOLE */
};

static void on_http(struct try *t, const struct http_answer *h);

/* ---- the library ---- */

static bool curl_open(struct curl *c, struct err *err) {
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL), *p;
    if (!library)
        return err_set(err, ERR_ENV,
                       "libcurl.so.4 cannot be loaded: model servers are out of reach\n"
                       "hint: install libcurl (Debian: libcurl4), or use --provider command");
#define FUNCTION(type, member, symbol, parameters)                                                 \
    if (!(p = dlsym(library, symbol)))                                                             \
        return err_set(err, ERR_ENV, "libcurl.so.4 has no %s", symbol);                            \
    memcpy(&c->member, &p, sizeof p);
    CURL_FUNCTIONS(FUNCTION)
#undef FUNCTION
    if (c->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(err, ERR_ENV, "libcurl cannot be initialised");
    return true;
}

/* ---- the end of a post ---- */

static void post_release(struct try *t) {
    struct remote *r = t->remote;
    loop_timer_cancel(r->loop, t->timer);
    if (t->easy) {
        r->curl.multi_remove(r->multi, t->easy);
        r->curl.easy_cleanup(t->easy);
    }
    r->curl.list_free(t->headers);
    buf_release(&t->sent);
    buf_release(&t->got);
    t->timer = 0;
    t->easy = NULL;
    t->headers = NULL;
}

static void post_end(struct try *t, enum http_end end, const char *why) {
    const struct curl *c = &t->remote->curl;
    struct http_answer a = {.end = end, .wait_ms = t->wait_ms, .body = buf_str(&t->got)};
    const char *type = NULL;
    c->info(t->easy, CURLINFO_RESPONSE_CODE, &a.status);
    c->info(t->easy, CURLINFO_CONTENT_TYPE, &type);
    snprintf(a.content_type, sizeof a.content_type, "%s", type ? type : "");
    snprintf(a.why, sizeof a.why, "%s", why ? why : "");
    struct buf got = t->got; /* outlives the post, which is gone before its answer is judged */
    buf_init(&t->got, 0);
    post_release(t);
    on_http(t, &a);
    buf_release(&got);
}

static void post_finish(struct try *t, CURLcode code) {
    const char *why = *t->error ? t->error : t->remote->curl.error_text(code);
    long status = 0;
    t->remote->curl.info(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (t->got.failed)
        post_end(t, HTTP_TOO_LARGE, "the answer is too large");
    else if (code == CURLE_OK)
        post_end(t, HTTP_WHOLE, NULL);
    else if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
        post_end(t, HTTP_UNSAFE, why);
    else if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
        post_end(t, HTTP_NO_URL, why);
    else
        post_end(t, status ? HTTP_BROKEN : HTTP_UNREACHABLE, why);
}

/* One at a time: a callback may end or add others. */
static void http_collect(struct remote *r) {
    int left;
    CURLMsg *m;
    while ((m = r->curl.multi_read(r->multi, &left))) {
        struct try *t;
        if (m->msg == CURLMSG_DONE &&
            r->curl.info(m->easy_handle, CURLINFO_PRIVATE, &t) == CURLE_OK)
            post_finish(t, m->data.result);
    }
}

/* ---- what libcurl waits for ---- */

static void on_socket(void *ctx, int fd, unsigned events) {
    struct remote *r = ctx;
    int running, mask = (events & LOOP_READ ? CURL_CSELECT_IN : 0) |
                        (events & LOOP_WRITE ? CURL_CSELECT_OUT : 0) |
                        (events & LOOP_HUP ? CURL_CSELECT_ERR : 0);
    r->curl.multi_act(r->multi, fd, mask, &running);
    http_collect(r);
}

static void on_timer(void *ctx) {
    struct remote *r = ctx;
    int running;
    r->timer = 0;
    r->curl.multi_act(r->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    http_collect(r);
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *unused) {
    struct remote *r = ctx;
    struct err err;
    (void)easy, (void)unused;
    if (what == CURL_POLL_REMOVE) {
        loop_unwatch(r->loop, fd);
        return 0;
    }
    unsigned events =
        (what & CURL_POLL_IN ? LOOP_READ : 0) | (what & CURL_POLL_OUT ? LOOP_WRITE : 0);
    return loop_watch(r->loop, fd, events, on_socket, r, &err) ? 0 : -1;
}

static int want_timer(CURLM *multi, long after_ms, void *ctx) {
    struct remote *r = ctx;
    (void)multi;
    loop_timer_cancel(r->loop, r->timer);
    r->timer = after_ms < 0 ? 0 : loop_timer(r->loop, (uint64_t)after_ms, on_timer, r);
    return 0;
}

/* ---- what comes ---- */

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx) {
    struct try *t = ctx;
    t->last_ms = clock_ms();
    buf_put(&t->got, bytes, size * n);
    return t->got.failed ? 0 : size * n;
}

/* Seconds or a date; one server says milliseconds in a header of its own. */
static uint64_t wait_of(const struct curl *c, str value, bool ms) {
    char text[64];
    double n;
    snprintf(text, sizeof text, "%.*s", STR_ARG(str_cut(value, 0, 63)));
    if (str_to_f64(value, &n))
        return n > 0 && n < 1e9 ? (uint64_t)(ms ? n : n * 1000) : 0;
    time_t then = ms ? -1 : c->date(text, NULL), now = time(NULL);
    return then > now ? (uint64_t)(then - now) * 1000 : 0;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *ctx) {
    struct try *t = ctx;
    str line = {bytes, size * n};
    size_t colon = str_find(line, S(":"));
    char name[20];
    snprintf(name, sizeof name, "%.*s", STR_ARG(str_cut(line, 0, colon < 19 ? colon : 0)));
    str value = str_trim(str_from(line, colon + 1));
    bool ms = !strcasecmp(name, "retry-after-ms");
    if (ms || (!strcasecmp(name, "retry-after") && !t->wait_ms))
        t->wait_ms = wait_of(&t->remote->curl, value, ms);
    return size * n;
}

/* ---- time ---- */

static void on_patience(void *ctx) {
    struct try *t = ctx;
    uint64_t stall_ms = t->remote->timeout_ms / STALLS;
    uint64_t now = clock_ms(), end = t->began_ms + t->remote->timeout_ms;
    bool stalled = t->last_ms && now >= t->last_ms + stall_ms;
    if (now >= end || stalled) {
        post_end(t, now >= end ? HTTP_LATE : HTTP_STALLED,
                 now >= end ? "no answer in time" : "the answer stopped coming");
        return;
    }
    uint64_t next = t->last_ms ? t->last_ms + stall_ms : now + stall_ms;
    next = next < end ? next : end;
    t->timer = loop_timer(t->remote->loop, next - now, on_patience, t);
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
    mem_free(t);
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

static void on_http(struct try *t, const struct http_answer *h) {
    struct attempt a = {.end = ATTEMPT_BAD};
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

/* Of a network with an authority of its own. The curl program reads these, the library does not. */
static const char *trusted_file(void) {
    const char *file = getenv("CURL_CA_BUNDLE");
    file = file && *file ? file : getenv("SSL_CERT_FILE");
    return file && *file ? file : NULL;
}

static bool post_set(struct try *t) {
    const struct remote *r = t->remote;
    const struct curl *c = &r->curl;
    const char *headers[] = {
        "Content-Type: application/json", "Accept: text/event-stream, application/json",
        "Expect:", r->key_header.n ? r->key_header.p : NULL, r->dialect->header};
    bool ok = true;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        struct curl_slist *more = headers[i] ? c->list_add(t->headers, headers[i]) : t->headers;
        ok &= more != NULL;
        t->headers = more ? more : t->headers;
    }
#define SET(option, value) ok &= c->set(t->easy, CURLOPT_##option, value) == CURLE_OK
    SET(URL, r->url);
    SET(HTTPHEADER, t->headers);
    SET(POSTFIELDS, t->sent.p ? t->sent.p : "");
    SET(POSTFIELDSIZE_LARGE, (curl_off_t)t->sent.n);
    SET(WRITEFUNCTION, on_body);
    SET(WRITEDATA, t);
    SET(HEADERFUNCTION, on_header);
    SET(HEADERDATA, t);
    SET(PRIVATE, t);
    SET(ERRORBUFFER, t->error);
    SET(CONNECTTIMEOUT_MS, (long)(r->timeout_ms < CONNECT_MS ? r->timeout_ms : CONNECT_MS));
    SET(NOSIGNAL, 1L);
    if (trusted_file())
        SET(CAINFO, trusted_file());
    if (r->key.here) /* through no proxy, whatever the environment says */
        SET(PROXY, "");
    SET(USERAGENT, "cutepilot/" CUTEPILOT_VERSION);
#undef SET
    return ok;
}

static bool try_send(struct try *t, struct err *err) {
    struct remote *r = t->remote;
    struct dialect_request d = {.model = r->model,
                                .system = t->q->system,
                                .user = t->q->user,
                                .max_tokens = t->q->max_tokens,
                                .temperature = r->temperature,
                                .quirks = t->quirks};
    uint64_t tokens = t->q->max_tokens < 1 << 20 ? t->q->max_tokens : 1 << 20;
    buf_init(&t->sent, SIZE_MAX / 2);
    buf_init(&t->got, BODY_BYTES + (size_t)tokens * BODY_TOKEN_BYTES);
    dialect_write(r->dialect, &d, &t->sent);
    t->began_ms = clock_ms();
    t->last_ms = t->wait_ms = 0;
    t->error[0] = 0;
    t->easy = r->curl.easy_init();
    if (t->easy && post_set(t) && r->curl.multi_add(r->multi, t->easy) == CURLM_OK) {
        on_patience(t);
        return true;
    }
    post_release(t);
    return err_set(err, ERR_ENV, "libcurl does not take the request");
}

static void *remote_start(void *self, const struct llm_request *q, attempt_fn *done, void *ctx,
                          struct err *err) {
    struct remote *r = self;
    struct try *t = mem_alloc(sizeof *t);
    *t = (struct try){.remote = r, .quirks = r->quirks, .q = q, .done = done, .ctx = ctx};
    if (try_send(t, err))
        return t;
    mem_free(t);
    return NULL;
}

static void remote_abort(void *attempt) {
    struct try *t = attempt;
    post_release(t);
    mem_free(t);
}

static void remote_release(void *self) {
    struct remote *r = self;
    if (r->multi)
        r->curl.multi_cleanup(r->multi);
    loop_timer_cancel(r->loop, r->timer);
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

static bool open_curl(struct remote *r, struct err *err) {
    if (!curl_open(&r->curl, err))
        return false;
    r->multi = r->curl.multi_init();
    if (!r->multi)
        mem_exhausted();
    r->curl.multi_set(r->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    r->curl.multi_set(r->multi, CURLMOPT_SOCKETDATA, r);
    r->curl.multi_set(r->multi, CURLMOPT_TIMERFUNCTION, want_timer);
    r->curl.multi_set(r->multi, CURLMOPT_TIMERDATA, r);
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
    if (find_key(r, o, err) && open_curl(r, err)) {
        *out = (struct backend){r, remote_start, remote_abort, remote_release};
        return true;
    }
    remote_release(r);
    return false;
}
