/* A record that is read is written, and read again the same. */
#include "eval/outcome.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e = {0};
    struct buf once, twice;
    struct record *r = record_parse((str){(const char *)data, size}, &e);
    if (!r) {
        if (e.kind != ERR_INPUT)
            abort();
        return 0;
    }
    buf_init(&once, 1 << 26);
    buf_init(&twice, 1 << 26);
    struct record *copy = record_copy(r);
    record_free(r);
    record_write(copy, &once);
    struct record *again = record_parse(buf_str(&once), &e);
    if (!again)
        abort();
    record_write(again, &twice);
    if (!str_eq(buf_str(&once), buf_str(&twice)))
        abort();
    outcome_free(outcome_of(copy));
    record_free(again);
    buf_release(&once);
    buf_release(&twice);
    return 0;
}
