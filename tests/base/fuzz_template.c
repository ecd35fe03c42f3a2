/* Pieces parted by a byte 1: the text of one slot, of the other, and the template. */
#include "base/template.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    str rest = {(const char *)data, size};
    struct slot slots[] = {{"a", {"", 0}}, {"b", {"", 0}}};
    struct err e = {0};
    struct buf out;
    str_word(&rest, 1, &slots[0].text);
    str_word(&rest, 1, &slots[1].text);
    buf_init(&out, 1 << 16);
    bool ok = template_render(S("fuzz"), rest, slots, 2, &out, &e);
    if (ok == (e.kind != ERR_NONE) || (ok && out.failed))
        abort();
    buf_release(&out);
    return 0;
}
