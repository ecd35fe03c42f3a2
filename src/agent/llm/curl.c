/* libcurl's multi interface on our loop: it says which descriptors and which time it waits for, we
 * watch them. Callbacks of ours run after libcurl has returned, never from within it, so they may
 * post and cancel as they like. */
#include "agent/llm/http.h"

#include "base/arena.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

struct post {
    struct http *http;
    uint64_t number;
    CURL *easy;
    struct curl_slist *headers;
    struct buf sent, got;
    uint64_t began_ms, last_ms; /* last: of a byte */
    uint64_t total_ms, stall_ms, timer;
    uint64_t wait_ms;
    char error[CURL_ERROR_SIZE];
    http_done_fn *done;
    void *ctx;
    struct post *next;
};

struct http {
    struct curl curl;
    struct loop *loop;
    CURLM *multi;
    uint64_t timer; /* libcurl's */
    uint64_t last;
    struct post *posts;
};

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

static void post_free(struct post *p) {
    struct http *h = p->http;
    for (struct post **at = &h->posts; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    loop_timer_cancel(h->loop, p->timer);
    if (p->easy) {
        h->curl.multi_remove(h->multi, p->easy);
        h->curl.easy_cleanup(p->easy);
    }
    h->curl.list_free(p->headers);
    buf_release(&p->sent);
    buf_release(&p->got);
    mem_free(p);
}

static void post_end(struct post *p, enum http_end end, const char *why) {
    struct http_answer a = {.end = end, .wait_ms = p->wait_ms, .body = buf_str(&p->got)};
    const char *type = NULL;
    p->http->curl.info(p->easy, CURLINFO_RESPONSE_CODE, &a.status);
    p->http->curl.info(p->easy, CURLINFO_CONTENT_TYPE, &type);
    snprintf(a.content_type, sizeof a.content_type, "%s", type ? type : "");
    snprintf(a.why, sizeof a.why, "%s", why ? why : "");
    http_done_fn *done = p->done;
    void *ctx = p->ctx;
    struct buf got = p->got; /* outlives the post, which is gone before the callback runs */
    buf_init(&p->got, 0);
    post_free(p);
    done(ctx, &a);
    buf_release(&got);
}

static void post_finish(struct post *p, CURLcode code) {
    const char *why = *p->error ? p->error : p->http->curl.error_text(code);
    long status = 0;
    p->http->curl.info(p->easy, CURLINFO_RESPONSE_CODE, &status);
    if (p->got.failed)
        post_end(p, HTTP_TOO_LARGE, "the answer is too large");
    else if (code == CURLE_OK)
        post_end(p, HTTP_WHOLE, NULL);
    else if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
        post_end(p, HTTP_UNSAFE, why);
    else if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
        post_end(p, HTTP_NO_URL, why);
    else
        post_end(p, status ? HTTP_BROKEN : HTTP_UNREACHABLE, why);
}

/* One at a time from the list's start: a callback may end or add others. */
static void http_collect(struct http *h) {
    int left;
    CURLMsg *m;
    while ((m = h->curl.multi_read(h->multi, &left))) {
        struct post *p = h->posts;
        while (p && p->easy != m->easy_handle)
            p = p->next;
        if (m->msg == CURLMSG_DONE && p)
            post_finish(p, m->data.result);
    }
}

/* ---- what libcurl waits for ---- */

static void on_socket(void *ctx, int fd, unsigned events) {
    struct http *h = ctx;
    int running, mask = (events & LOOP_READ ? CURL_CSELECT_IN : 0) |
                        (events & LOOP_WRITE ? CURL_CSELECT_OUT : 0) |
                        (events & LOOP_HUP ? CURL_CSELECT_ERR : 0);
    h->curl.multi_act(h->multi, fd, mask, &running);
    http_collect(h);
}

static void on_timer(void *ctx) {
    struct http *h = ctx;
    int running;
    h->timer = 0;
    h->curl.multi_act(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    http_collect(h);
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *unused) {
    struct http *h = ctx;
    struct err err;
    (void)easy, (void)unused;
    if (what == CURL_POLL_REMOVE) {
        loop_unwatch(h->loop, fd);
        return 0;
    }
    unsigned events =
        (what & CURL_POLL_IN ? LOOP_READ : 0) | (what & CURL_POLL_OUT ? LOOP_WRITE : 0);
    return loop_watch(h->loop, fd, events, on_socket, h, &err) ? 0 : -1;
}

static int want_timer(CURLM *multi, long after_ms, void *ctx) {
    struct http *h = ctx;
    (void)multi;
    loop_timer_cancel(h->loop, h->timer);
    h->timer = after_ms < 0 ? 0 : loop_timer(h->loop, (uint64_t)after_ms, on_timer, h);
    return 0;
}

/* ---- what comes ---- */

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx) {
    struct post *p = ctx;
    p->last_ms = clock_ms();
    buf_put(&p->got, bytes, size * n);
    return p->got.failed ? 0 : size * n;
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
    struct post *p = ctx;
    str line = {bytes, size * n};
    size_t colon = str_find(line, S(":"));
    char name[20];
    snprintf(name, sizeof name, "%.*s", STR_ARG(str_cut(line, 0, colon < 19 ? colon : 0)));
    str value = str_trim(str_from(line, colon + 1));
    bool ms = !strcasecmp(name, "retry-after-ms");
    if (ms || (!strcasecmp(name, "retry-after") && !p->wait_ms))
        p->wait_ms = wait_of(&p->http->curl, value, ms);
    return size * n;
}

/* ---- time ---- */

static void on_patience(void *ctx) {
    struct post *p = ctx;
    uint64_t now = clock_ms(), end = p->began_ms + p->total_ms;
    bool stalled = p->last_ms && now >= p->last_ms + p->stall_ms;
    if (now >= end || stalled) {
        post_end(p, now >= end ? HTTP_LATE : HTTP_STALLED,
                 now >= end ? "no answer in time" : "the answer stopped coming");
        return;
    }
    uint64_t next = p->last_ms ? p->last_ms + p->stall_ms : now + p->stall_ms;
    next = next < end ? next : end;
    p->timer = loop_timer(p->http->loop, next - now, on_patience, p);
}

/* ---- a post ---- */

/* Of a network with an authority of its own. The curl program reads these, the library does not. */
static const char *trusted_file(void) {
    const char *file = getenv("CURL_CA_BUNDLE");
    file = file && *file ? file : getenv("SSL_CERT_FILE");
    return file && *file ? file : NULL;
}

static bool post_set(struct post *p, const struct http_request *q) {
    const struct curl *c = &p->http->curl;
    bool ok = true;
    for (size_t i = 0; i < q->nheaders; i++) {
        struct curl_slist *more = c->list_add(p->headers, q->headers[i]);
        ok &= more != NULL;
        p->headers = more ? more : p->headers;
    }
    buf_puts(&p->sent, q->body);
#define SET(option, value) ok &= c->set(p->easy, CURLOPT_##option, value) == CURLE_OK
    SET(URL, q->url);
    SET(HTTPHEADER, p->headers);
    SET(POSTFIELDS, p->sent.p ? p->sent.p : "");
    SET(POSTFIELDSIZE_LARGE, (curl_off_t)p->sent.n);
    SET(WRITEFUNCTION, on_body);
    SET(WRITEDATA, p);
    SET(HEADERFUNCTION, on_header);
    SET(HEADERDATA, p);
    SET(ERRORBUFFER, p->error);
    SET(CONNECTTIMEOUT_MS, (long)q->connect_ms);
    SET(NOSIGNAL, 1L);
    if (trusted_file())
        SET(CAINFO, trusted_file());
    if (q->direct)
        SET(PROXY, "");
    SET(USERAGENT, "cutepilot/" CUTEPILOT_VERSION);
#undef SET
    return ok;
}

uint64_t http_post(struct http *h, const struct http_request *q, http_done_fn *done, void *ctx,
                   struct err *err) {
    struct post *p = mem_alloc(sizeof *p);
    *p = (struct post){.http = h, .number = ++h->last, .done = done, .ctx = ctx};
    p->began_ms = clock_ms();
    p->total_ms = q->total_ms;
    p->stall_ms = q->stall_ms;
    buf_init(&p->sent, SIZE_MAX / 2);
    buf_init(&p->got, q->max_bytes);
    p->next = h->posts;
    h->posts = p;
    p->easy = h->curl.easy_init();
    if (!p->easy || !post_set(p, q) || h->curl.multi_add(h->multi, p->easy) != CURLM_OK) {
        post_free(p);
        err_set(err, ERR_ENV, "libcurl does not take the request");
        return 0;
    }
    on_patience(p);
    return p->number;
}

void http_cancel(struct http *h, uint64_t number) {
    struct post *p = h->posts;
    while (p && p->number != number)
        p = p->next;
    if (p)
        post_free(p);
}

/* ---- all of them ---- */

struct http *http_new(struct loop *l, struct err *err) {
    struct http *h = mem_alloc(sizeof *h);
    h->loop = l;
    if (!curl_open(&h->curl, err)) {
        mem_free(h);
        return NULL;
    }
    h->multi = h->curl.multi_init();
    if (!h->multi)
        mem_exhausted();
    h->curl.multi_set(h->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    h->curl.multi_set(h->multi, CURLMOPT_SOCKETDATA, h);
    h->curl.multi_set(h->multi, CURLMOPT_TIMERFUNCTION, want_timer);
    h->curl.multi_set(h->multi, CURLMOPT_TIMERDATA, h);
    return h;
}

void http_free(struct http *h) {
    if (!h)
        return;
    while (h->posts)
        post_free(h->posts);
    h->curl.multi_cleanup(h->multi);
    loop_timer_cancel(h->loop, h->timer);
    mem_free(h);
}
