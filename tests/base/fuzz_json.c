/* What is read, written and read again is written the same. */
#include "base/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e = {0};
    json *j = json_parse((str){(const char *)data, size}, &e);
    if (!j) {
        if (e.kind != ERR_INPUT)
            abort();
        return 0;
    }
    struct buf once, twice;
    buf_init(&once, 1 << 24);
    buf_init(&twice, 1 << 24);
    json_write(j, &once);
    json *again = json_parse(buf_str(&once), &e);
    if (!again)
        abort();
    json_write(again, &twice);
    if (!str_eq(buf_str(&once), buf_str(&twice)))
        abort();
    json_free(j);
    json_free(again);
    buf_release(&once);
    buf_release(&twice);
    return 0;
}
