#include "fuzz_option.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 1 << 16)
        return 0;
    struct arena *a = arena_new(64 << 20);
    struct err err = {0};
    struct options *o = options_new(&fuzz_set, 0, a);
    bool ok = options_read_yaml(o, S("fuzz.yaml"), (str){(const char *)data, size}, &err);
    BUG_IF(!ok && (err.kind != ERR_INPUT || !err.text[0]));
    arena_free(a);
    return 0;
}
