/* History pools are files that people exchange. */
#include "archive/history.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct history h;
    struct err err = {0};
    history_init(&h);
    if (history_parse(&h, S("pool"), (str){(const char *)data, size}, &err)) {
        struct buf text;
        struct history again;
        buf_init(&text, 64u << 20);
        history_init(&again);
        history_text(&h, &text);
        BUG_IF(!text.failed && !history_parse(&again, S("again"), buf_str(&text), &err));
        BUG_IF(!text.failed && again.n != h.n);
        history_release(&again);
        buf_release(&text);
    }
    history_release(&h);
    return 0;
}
