/* Server-sent events; the rules are those of the HTML standard, section 9.2.6. */
#include "agent/llm/sse.h"

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
