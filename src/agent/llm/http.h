/* HTTP posts over libcurl, several in flight, driven by the loop. libcurl.so.4 is opened when it is
 * first needed: the program does not link it, and this header does not show it.
 *
 * A post ends exactly once, through its callback, from the loop; a cancelled one never. A callback
 * may post and cancel, but not free. The body is collected up to a ceiling. TLS certificates are
 * verified, against libcurl's own store or the file that CURL_CA_BUNDLE or SSL_CERT_FILE names.
 * Redirects are not followed, since a key would travel with them. Nothing of a request is ever
 * printed. */
#ifndef AGENT_LLM_HTTP_H
#define AGENT_LLM_HTTP_H

#include "base/loop.h"

struct http;

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

struct http_request {
    const char *url;
    const char *const *headers; /* "Name: value", n of them */
    size_t nheaders;
    str body;
    bool direct; /* through no proxy, whatever the environment says */
    uint64_t connect_ms;
    uint64_t total_ms;
    uint64_t stall_ms; /* without a byte, once the answer has begun */
    size_t max_bytes;  /* of the answer */
};

struct http_answer {
    enum http_end end;
    long status; /* 0: none came */
    char content_type[128];
    uint64_t wait_ms; /* Retry-After; 0: not said */
    str body;         /* what came of it; valid during the callback */
    char why[256];    /* unless HTTP_WHOLE */
};

typedef void http_done_fn(void *ctx, const struct http_answer *a);

struct http *http_new(struct loop *l, struct err *err); /* NULL and err: no libcurl */
void http_free(struct http *h);                         /* cancels what is in flight */
uint64_t http_post(struct http *h, const struct http_request *q, http_done_fn *done, void *ctx,
                   struct err *err); /* its number; 0 and err */
void http_cancel(struct http *h, uint64_t number);

#endif
