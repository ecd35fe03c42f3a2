/* Whatever a server sends is read by either dialect, as a stream and whole: its first byte says
 * which. A failure has a printable line. */
#include "agent/llm/dialect.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const char *line) {
    for (; *line; line++)
        if ((unsigned char)*line < ' ')
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct answer a;
    struct quirks q = {0};
    char line[96];
    if (!size)
        return 0;
    const struct dialect *d = data[0] & 1 ? &dialect_anthropic : &dialect_openai;
    str body = {(const char *)data + 1, size - 1};
    answer_init(&a);
    if (data[0] & 2)
        dialect_read_stream(d, body, &a);
    else
        dialect_read_body(d, body, &a);
    if (a.text.n > ANSWER_MAX_TEXT)
        abort();
    check_line(a.why);
    answer_release(&a);
    dialect_error_line(body, line, sizeof line);
    check_line(line);
    d->adapt(body, &q);
    return 0;
}
