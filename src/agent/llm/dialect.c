/* What the dialects share: the walk over a stream, and errors in the shapes servers give them. */
#include "agent/llm/dialect.h"

#include <string.h>

static const struct dialect *const dialects[] = {&dialect_openai, &dialect_anthropic};

const struct dialect *dialect_named(const char *name) {
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++)
        if (!strcmp(dialects[i]->name, name))
            return dialects[i];
    return NULL;
}

void answer_init(struct answer *a) {
    memset(a, 0, sizeof *a);
    buf_init(&a->text, ANSWER_MAX_TEXT);
}

void answer_release(struct answer *a) {
    buf_release(&a->text);
}

void answer_fail(struct answer *a, bool busy, str why) {
    if (a->failed)
        return;
    a->failed = true;
    a->busy = busy;
    line_of(why, a->why, sizeof a->why);
}

void line_of(str text, char *out, size_t n) {
    size_t used = 0;
    bool blank = false;
    text = str_trim(text);
    while (text.n) {
        size_t k = str_utf8(text);
        bool shown = k > 1 || (k == 1 && text.p[0] > ' ' && text.p[0] != 127);
        if (used + (blank && used) + (shown ? k : 1) + 1 > n)
            break;
        if (shown && blank && used)
            out[used++] = ' ';
        blank = !shown;
        if (shown && used + k < n) {
            memcpy(out + used, text.p, k);
            used += k;
        }
        text = str_from(text, k ? k : 1);
    }
    out[used] = 0;
}

/* ---- errors ---- */

static bool is_busy(str type) {
    static const char *const names[] = {"overloaded_error",   "rate_limit_error", "api_error",
                                        "timeout_error",      "server_error",     "overloaded",
                                        "rate_limit_exceeded"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(type, names[i]))
            return true;
    return false;
}

static void read_error_object(const json *error, struct answer *out) {
    str message = S("an error without a message"), type = {0}, code = {0};
    json_get_str(error, "type", &type);
    json_get_str(error, "code", &code);
    if (!json_get_str(error, "message", &message) && type.n)
        message = type;
    answer_fail(out, is_busy(type) || is_busy(code), message);
    out->exhausted = str_is(code, "insufficient_quota") || str_is(type, "insufficient_quota");
}

bool answer_read_error(const json *body, struct answer *out) {
    const json *error = json_get(body, "error");
    str text;
    if (json_is_object(error))
        read_error_object(error, out);
    else if (json_to_str(error, &text))
        answer_fail(out, false, text);
    else
        return false;
    return true;
}

void dialect_error_line(str body, char *out, size_t n) {
    struct answer a;
    struct err none = {0};
    str text;
    json *j = json_parse(body, &none);
    answer_init(&a);
    if (j && answer_read_error(j, &a))
        line_of(str_view(a.why), out, n);
    else if (j && (json_get_str(j, "message", &text) || json_get_str(j, "detail", &text)))
        line_of(text, out, n);
    else
        line_of(str_cut(body, 0, 200), out, n);
    answer_release(&a);
    json_free(j);
}

/* ---- server-sent events ---- */
/* The rules are those of the HTML standard, section 9.2.6. */

/* Up to the line's end and past it. `ended` is false where the text stops first. */
static str take_line(str *rest, bool *ended) {
    size_t n = 0;
    while (n < rest->n && rest->p[n] != '\n' && rest->p[n] != '\r')
        n++;
    str line = str_cut(*rest, 0, n);
    *ended = n < rest->n;
    bool crlf = *ended && rest->p[n] == '\r' && n + 1 < rest->n && rest->p[n + 1] == '\n';
    *rest = str_from(*rest, n + *ended + crlf);
    return line;
}

static bool data_of(str line, str *value) {
    if (str_starts(line, S("\xef\xbb\xbf")))
        line = str_from(line, 3);
    if (!str_starts(line, S("data")) || (line.n > 4 && line.p[4] != ':'))
        return false;
    *value = str_from(line, 5);
    if (str_starts(*value, S(" ")))
        *value = str_from(*value, 1);
    return true;
}

bool sse_next(str *rest, struct buf *data, bool *whole) {
    bool any = false, ended = true;
    str value;
    buf_clear(data);
    while (rest->n) {
        str line = take_line(rest, &ended);
        if (!line.n && ended && any) {
            *whole = true;
            return true;
        }
        if (!data_of(line, &value))
            continue;
        if (any)
            buf_putc(data, '\n');
        buf_puts(data, value);
        any = true;
    }
    *whole = false;
    return any;
}

/* ---- the way in and out ---- */

void dialect_write(const struct dialect *d, const struct dialect_request *q, struct buf *out) {
    json *body = json_object();
    d->write(q, body);
    json_write(body, out);
    json_free(body);
}

/* An event that the stream breaks off in is no mistake of the server's language: the answer has
 * merely not ended. */
void dialect_read_stream(const struct dialect *d, str body, struct answer *out) {
    struct buf data;
    bool whole;
    buf_init(&data, ANSWER_MAX_TEXT);
    while (!out->failed && sse_next(&body, &data, &whole)) {
        struct err err = {0};
        if (str_is(buf_str(&data), "[DONE]")) {
            out->ended = true;
            break;
        }
        json *event = data.failed ? NULL : json_parse(buf_str(&data), &err);
        if (event)
            d->read_event(event, out);
        else if (whole)
            answer_fail(out, false, S("an event of the stream is not JSON"));
        json_free(event);
    }
    buf_release(&data);
    if (out->text.failed)
        answer_fail(out, false, S("the answer's text is over 16 MiB"));
}

void dialect_read_body(const struct dialect *d, str body, struct answer *out) {
    struct err err = {0};
    json *j = json_parse(body, &err);
    if (!j)
        answer_fail(out, false, S("the answer is not JSON"));
    else if (!answer_read_error(j, out))
        d->read_whole(j, out);
    json_free(j);
    if (out->text.failed)
        answer_fail(out, false, S("the answer's text is over 16 MiB"));
}
