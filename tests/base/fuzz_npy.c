/* What is accepted has exactly the bytes its shape claims, all inside the input. */
#include "base/npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e = {0};
    struct npy a;
    if (!npy_parse((str){(const char *)data, size}, &a, &e))
        return 0;
    const char *from = a.data, *end = (const char *)data + size;
    size_t bytes = a.item;
    for (size_t i = 0; i < a.rank; i++)
        bytes *= (size_t)a.shape[i];
    if (a.rank > NPY_MAX_RANK || bytes != a.bytes || from + a.bytes != end)
        abort();
    return 0;
}
