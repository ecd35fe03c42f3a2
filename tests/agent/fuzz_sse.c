/* Events are found in any bytes; what is left shrinks, and the data never exceeds the text. */
#include "agent/llm/dialect.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    str rest = {(const char *)data, size};
    struct buf event;
    bool whole = true;
    size_t all = 0;
    buf_init(&event, 1 << 20);
    for (size_t before = rest.n; sse_next(&rest, &event, &whole); before = rest.n) {
        if (rest.n >= before || (!whole && rest.n))
            abort();
        all += event.n;
    }
    if (all > size || rest.n)
        abort();
    buf_release(&event);
    return 0;
}
