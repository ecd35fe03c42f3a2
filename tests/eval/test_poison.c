#include "eval/poison.h"
#include "spec/data.h"

#include "tap.h"

#define N 257

static const double estimate[N]; /* nothing is allowed */

static void poison_is_found(void) {
    for (int t = 0; t < DTYPE_COUNT; t++) {
        unsigned char got[8 * N];
        double expected[N];
        size_t first = N;
        for (size_t i = 0; i < N; i++)
            expected[i] = 1e30; /* no integer poison equals it */
        poison_fill((enum dtype)t, 42, N, 2, got);
        CHECKF(poison_count((enum dtype)t, 42, got, expected, estimate, 32, N, 2, &first) == N &&
                   first == 0,
               "dtype %s", dtype_info((enum dtype)t)->name);
    }
}

static void one_unwritten_element_is_found(void) {
    for (int t = 0; t < DTYPE_COUNT; t++) {
        const size_t item = dtype_info((enum dtype)t)->bytes;
        unsigned char got[8 * N], fresh[8 * N];
        double values[N], expected[N];
        size_t first = N;
        poison_fill((enum dtype)t, 7, N, 2, fresh);
        for (size_t i = 0; i < N; i++) {
            values[i] = (double)(i % 2);
            expected[i] = i == 200 ? 1e30 : values[i];
        }
        data_store((enum dtype)t, values, N, got);
        memcpy(got + 200 * item, fresh + 200 * item, item);
        CHECKF(poison_count((enum dtype)t, 7, got, expected, estimate, 32, N, 2, &first) == 1 &&
                   first == 200,
               "dtype %s", dtype_info((enum dtype)t)->name);
    }
}

static void float_poison_is_a_signalling_nan(void) {
    uint32_t bits[N];
    poison_fill(DTYPE_F32, 3, N, 2, bits);
    for (size_t i = 0; i < N; i++) {
        CHECK((bits[i] & 0x7f800000u) == 0x7f800000u); /* NaN or infinite … */
        CHECK((bits[i] & 0x003fffffu) != 0);           /* … NaN … */
        CHECK((bits[i] & 0x00400000u) == 0);           /* … that signals */
    }
}

static void an_integer_that_happens_to_be_right_is_written(void) {
    int32_t got[N];
    double expected[N];
    size_t first;
    poison_fill(DTYPE_I32, 9, N, 2, got);
    for (size_t i = 0; i < N; i++)
        expected[i] = got[i];
    CHECK(poison_count(DTYPE_I32, 9, got, expected, estimate, 32, N, 2, &first) == 0);
    double allowed[N];
    for (size_t i = 0; i < N; i++) {
        allowed[i] = i % 2 ? 1 : INFINITY; /* off by as much as is allowed, or not judged */
        expected[i] = i % 2 ? got[i] + 30.0 : NAN;
    }
    CHECK(poison_count(DTYPE_I32, 9, got, expected, allowed, 32, N, 2, &first) == 0);
    CHECK(poison_count(DTYPE_I32, 9, got, expected, allowed, 2, N, 2, &first) == N / 2);
}

static void other_keys_give_other_poison(void) {
    uint32_t a[N], b[N];
    size_t same = 0;
    poison_fill(DTYPE_F32, 1, N, 2, a);
    poison_fill(DTYPE_F32, 2, N, 2, b);
    for (size_t i = 0; i < N; i++)
        same += a[i] == b[i];
    CHECK(same < 3);
}

static void canaries_show_every_byte(void) {
    unsigned char c[61];
    size_t first;
    for (size_t n = 1; n <= sizeof c; n++)
        for (size_t i = 0; i < n; i++) {
            canary_fill(5, c, n);
            CHECK(canary_holds(5, c, n, &first));
            c[i] ^= 0x10;
            CHECKF(!canary_holds(5, c, n, &first) && first == i, "byte %zu of %zu", i, n);
        }
}

static const struct tap_case cases[] = {
    {"poison is found in every dtype", poison_is_found},
    {"one unwritten element is found", one_unwritten_element_is_found},
    {"float poison is a signalling NaN", float_poison_is_a_signalling_nan},
    {"an integer that happens to be right counts as written",
     an_integer_that_happens_to_be_right_is_written},
    {"another key gives another poison", other_keys_give_other_poison},
    {"canaries show every byte", canaries_show_every_byte},
};
TAP_CASES(cases)
