/* Arithmetic that says when it does not fit. All return false on overflow. */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool add_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
static inline bool sub_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_sub_overflow(a, b, out);
}
static inline bool mul_i64(int64_t a, int64_t b, int64_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool add_size(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}
static inline bool mul_size(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}
/* Floor division and modulo, as the task language and launch plans define them. False for b == 0
 * and for INT64_MIN / -1. */
static inline bool floordiv_i64(int64_t a, int64_t b, int64_t *out) {
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    *out = a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
    return true;
}
/* By 0 to 62 places: a times 2^by, and a over 2^by rounded down. */
static inline bool shl_i64(int64_t a, int64_t by, int64_t *out) {
    return by >= 0 && by <= 62 && mul_i64(a, INT64_C(1) << by, out);
}
static inline bool shr_i64(int64_t a, int64_t by, int64_t *out) {
    return by >= 0 && by <= 62 && floordiv_i64(a, INT64_C(1) << by, out);
}
static inline bool floormod_i64(int64_t a, int64_t b, int64_t *out) {
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    int64_t r = a % b;
    *out = r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
    return true;
}

#endif
