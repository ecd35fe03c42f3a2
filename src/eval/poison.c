#include "eval/poison.h"

#include "spec/data.h"

#include <string.h>

/* A bijective mix of 64 bits: neighbouring elements get unrelated patterns. */
static uint64_t mix(uint64_t key, uint64_t i) {
    uint64_t z = key + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t pattern(enum dtype t, uint64_t key, uint64_t i) {
    uint64_t r = mix(key, i);
    switch (t) {
    case DTYPE_F64:
        return 0x7ff0000000000001u | (r & 0x8007ffffffffffffu);
    case DTYPE_F32:
        return 0x7f800001u | (r & 0x803fffffu);
    case DTYPE_F16:
        return 0x7c01u | (r & 0x81ffu);
    case DTYPE_BF16:
        return 0x7f81u | (r & 0x803fu);
    case DTYPE_BOOL:
        return 2 + r % 254;
    default:
        return r;
    }
}

void poison_fill(enum dtype t, uint64_t key, size_t count, void *dst) {
    size_t item = dtype_info(t)->bytes;
    char *p = dst;
    for (size_t i = 0; i < count; i++, p += item) {
        uint64_t bits = pattern(t, key, i);
        memcpy(p, &bits, item); /* little endian */
    }
}

uint64_t poison_count(enum dtype t, uint64_t key, const void *got, const double *expected,
                      size_t count, size_t *first) {
    size_t item = dtype_info(t)->bytes;
    bool integer = dtype_info(t)->kind == 'i' || dtype_info(t)->kind == 'u';
    const char *p = got;
    uint64_t found = 0;
    for (size_t i = 0; i < count; i++, p += item) {
        uint64_t bits = pattern(t, key, i);
        if (memcmp(p, &bits, item) != 0)
            continue;
        if (integer) {
            double value;
            data_load(t, p, 1, &value);
            if (value == expected[i])
                continue;
        }
        if (!found++)
            *first = i;
    }
    return found;
}

void canary_fill(uint64_t key, void *dst, size_t bytes) {
    char *p = dst;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t bits = mix(key, i);
        memcpy(p + i, &bits, bytes - i < 8 ? bytes - i : 8);
    }
}

bool canary_holds(uint64_t key, const void *p, size_t bytes, size_t *first) {
    const char *c = p;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t bits = mix(key, i);
        size_t n = bytes - i < 8 ? bytes - i : 8;
        if (memcmp(c + i, &bits, n) == 0)
            continue;
        *first = i;
        while (c[*first] == ((const char *)&bits)[*first - i])
            ++*first;
        return false;
    }
    return true;
}
