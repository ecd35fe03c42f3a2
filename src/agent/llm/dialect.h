/* The languages of model servers: how a request is written and an answer is read. Pure, so that
 * they can be fuzzed: bytes in, bytes out; no network, no clock, no key.
 *
 * A new dialect is a file and a row in dialect.c. */
#ifndef AGENT_LLM_DIALECT_H
#define AGENT_LLM_DIALECT_H

#include "base/json.h"

enum { ANSWER_MAX_TEXT = 16 << 20 }; /* bytes of an answer's text */

/* What a server was found not to understand. */
struct quirks {
    bool other_limit;    /* the other name of the limit on the reply's tokens */
    bool no_usage;       /* stream_options */
    bool no_temperature; /* some models take only their own */
};

struct dialect_request {
    const char *model;
    str system, user;
    uint64_t max_tokens;
    double temperature; /* NAN: the model's */
    struct quirks quirks;
};

struct answer {
    struct buf text;
    uint64_t tokens_in, tokens_out;
    bool counted; /* the server said how many */
    bool ended;   /* the answer's end was seen */
    bool cut;     /* by the limit on its tokens */
    bool failed, busy;
    bool exhausted;
    char why[512]; /* of failed: one line. busy: asking later may help. exhausted: never will */
};

struct dialect {
    const char *name;
    const char *url;        /* where it is at home */
    const char *path;       /* of the request below the URL */
    const char *key_header; /* what the key is put behind */
    const char *header;     /* one more; NULL: none */
    void (*write)(const struct dialect_request *q, json *body);
    void (*read_event)(const json *event, struct answer *out); /* one of a stream */
    void (*read_whole)(const json *body, struct answer *out);
    /* From the message of a refusal: what to leave out the next time. False: nothing. */
    bool (*adapt)(str message, struct quirks *q);
};

extern const struct dialect dialect_openai, dialect_anthropic;
const struct dialect *dialect_named(const char *name); /* NULL: none */

void answer_init(struct answer *a);
void answer_release(struct answer *a);
/* Fails it, once: the first reason is the one that is told. */
void answer_fail(struct answer *a, bool busy, str why);
/* The object {"error": …} of a body or an event, in any of the shapes servers use; false: none. */
bool answer_read_error(const json *body, struct answer *out);

void dialect_write(const struct dialect *d, const struct dialect_request *q, struct buf *out);
void dialect_read_stream(const struct dialect *d, str body, struct answer *out);
void dialect_read_body(const struct dialect *d, str body, struct answer *out);
/* One printable line of at most n - 1 bytes from an error's body, JSON or not. */
void dialect_error_line(str body, char *out, size_t n);
/* One printable line of a text: blanks for control bytes, cut between characters. */
void line_of(str text, char *out, size_t n);

/* Server-sent events, read from a text that has arrived: the next event that has data, its lines
 * joined by LF in `data` (cleared first), and what follows it in `rest`. False at the end. `whole`
 * is false for an event that the text ends within, before its empty line. Lines end with LF, CR or
 * CRLF; comments, unknown fields and a byte-order mark are passed over. */
bool sse_next(str *rest, struct buf *data, bool *whole);

#endif
