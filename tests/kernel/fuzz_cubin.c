/* cubin_facts on any bytes: it reads nothing outside them. */
#include "kernel/cubin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct arena *a = arena_new(64u << 20);
    struct kernel_facts *facts;
    size_t count;
    struct err err = {0};
    cubin_facts((str){(const char *)data, n}, a, &facts, &count, &err);
    arena_free(a);
    return 0;
}
