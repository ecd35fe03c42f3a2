/* Any text as a file of GPU facts: refused with a message, or a GPU whose numbers can be used. */
#include "target/gpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct arena *a = arena_new(16u << 20);
    const struct gpu *g = NULL;
    struct err err = {0};
    if (n > GPU_FILE_BYTES)
        n = GPU_FILE_BYTES;
    if (!gpu_parse(S("f.gpu"), (str){(const char *)data, n}, a, &g, &err))
        BUG_IF(err.kind != ERR_INPUT || !*err.text);
    else
        BUG_IF(!(g->clock_hz > 0) || g->sms < 1 || !g->name || !g->title || !g->arch);
    arena_free(a);
    return 0;
}
