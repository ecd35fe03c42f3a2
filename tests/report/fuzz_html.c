/* Any bytes, as text, as a line of code and as JSON: no markup but ours is left, and the JSON reads
 * back. */
#include "report/code.h"
#include "report/html.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(str s, struct buf *b) {
    buf_clear(b);
    html_text(b, s);
    for (size_t i = 0; i < b->n; i++)
        if (strchr("<>\"'", b->p[i]) || ((unsigned char)b->p[i] < ' ' && !strchr("\n\t", b->p[i])))
            abort();
}

/* Of tags only spans, with classes of our own. */
static void check_code(str s, struct buf *b) {
    bool in_comment = s.n & 1;
    buf_clear(b);
    code_line(b, s, &in_comment);
    for (size_t i = 0; i < b->n; i++) {
        str rest = str_from(buf_str(b), i);
        if (b->p[i] == '<' && !str_starts(rest, S("<span class=\"")) &&
            !str_starts(rest, S("</span>")))
            abort();
    }
}

static void check_json(str s, struct buf *b) {
    json *j = json_array();
    struct err err;
    json_push_str(j, s);
    buf_clear(b);
    html_json(b, j);
    json *back = json_parse(buf_str(b), &err);
    if (!back || memchr(b->p, '<', b->n) || memchr(b->p, '>', b->n))
        abort();
    json_free(j);
    json_free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    str s = {(const char *)data, size};
    struct buf b;
    buf_init(&b, 64 * size + 1024);
    check_text(s, &b);
    check_code(s, &b);
    check_json(s, &b);
    buf_release(&b);
    return 0;
}
