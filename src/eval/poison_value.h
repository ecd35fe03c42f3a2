/* The patterns of poison.h, one element at a time. Read by two compilers (spec/shared.h). */
#ifndef EVAL_POISON_VALUE_H
#define EVAL_POISON_VALUE_H

#include "spec/shared.h"
#include "spec/task.h"

/* A bijective mix of 64 bits: neighbouring elements get unrelated patterns. */
SHARED uint64_t poison_mix(uint64_t key, uint64_t i) {
    uint64_t z = key + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The low bytes are those of element i. */
SHARED uint64_t poison_pattern(enum dtype t, uint64_t key, uint64_t i) {
    uint64_t r = poison_mix(key, i);
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

#endif
