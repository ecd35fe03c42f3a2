#include "eval/poison.h"

#include "eval/poison_value.h"
#include "spec/data.h"

#include <math.h>
#include <string.h>

void poison_fill(enum dtype t, uint64_t key, size_t count, void *dst) {
    size_t item = dtype_info(t)->bytes;
    char *p = dst;
    for (size_t i = 0; i < count; i++, p += item) {
        uint64_t bits = poison_pattern(t, key, i);
        memcpy(p, &bits, item); /* little endian */
    }
}

/* Element i holds its pattern. Sizes are constants, so that it costs no call. */
static inline bool is_poison(enum dtype t, uint64_t key, size_t i, const char *p, size_t item) {
    uint64_t bits = poison_pattern(t, key, i);
    switch (item) {
    case 1:
        return memcmp(p, &bits, 1) == 0;
    case 2:
        return memcmp(p, &bits, 2) == 0;
    case 4:
        return memcmp(p, &bits, 4) == 0;
    default:
        return memcmp(p, &bits, 8) == 0;
    }
}

uint64_t poison_count(enum dtype t, uint64_t key, const void *got, const double *expected,
                      const double *estimate, double worst, size_t count, size_t *first) {
    size_t item = dtype_info(t)->bytes;
    bool integer = dtype_info(t)->kind == 'i' || dtype_info(t)->kind == 'u';
    const char *p = got;
    uint64_t found = 0;
    for (size_t i = 0; i < count; i++, p += item) {
        if (!is_poison(t, key, i, p, item))
            continue;
        if (integer) {
            double value;
            data_load(t, p, 1, &value);
            if (value == expected[i] || isinf(estimate[i]) ||
                fabs(value - expected[i]) <= worst * estimate[i])
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
        uint64_t bits = poison_mix(key, i);
        memcpy(p + i, &bits, bytes - i < 8 ? bytes - i : 8);
    }
}

bool canary_holds(uint64_t key, const void *p, size_t bytes, size_t *first) {
    const char *c = p;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t bits = poison_mix(key, i);
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
