/* The tables of operations for different CPUs hold the same operations and give the same bits. */
#include "tap.h"

#include "base/rng.h"
#include "sim/lanes.h"

enum { ROUNDS = 64, LANES_BYTES = SIM_LANES * 8 };

/* Bits of every kind: small integers, powers of two, floats near 1, specials, noise. */
static uint64_t operand(struct rng r, uint64_t at) {
    static const uint64_t special[] = {
        0,
        1,
        UINT64_MAX,
        UINT64_C(0x8000000080000000),
        UINT64_C(0x7f8000007fc00001),
        UINT64_C(0x3f8000003f800000),
        UINT64_C(0x7ff0000000000000),
        UINT64_C(0x7ff8000000000001),
        UINT64_C(0x3ff0000000000000),
        UINT64_C(0x00000001ff800000),
        UINT64_C(0x7c007c01fc007e00),
        UINT64_C(0x0000000000800001),
    };
    uint64_t v = rng_u64(r, 3 * at), kind = rng_u64(r, 3 * at + 1) % 8;
    if (kind == 0)
        return special[v % (sizeof special / sizeof *special)];
    if (kind == 1)
        return v % 67;
    if (kind == 2)
        return (v & UINT64_C(0x807fffff807fffff)) | UINT64_C(0x3f0000003f000000);
    if (kind == 3)
        return UINT64_C(1) << v % 64;
    return v;
}

struct state {
    _Alignas(64) uint8_t a[LANES_BYTES], b[LANES_BYTES], c[LANES_BYTES], e[LANES_BYTES],
        d[LANES_BYTES];
};

static void fill(struct state *s, struct rng r, const char *shape) {
    uint8_t *to[4] = {s->a, s->b, s->c, s->e};
    size_t n = strlen(shape);
    for (int k = 0; k < 4; k++)
        for (unsigned i = 0; i < SIM_LANES; i++) {
            uint64_t v = operand(r, (uint64_t)k * 64 + i);
            char c = (size_t)k + 1 < n ? shape[k + 1] : '4';
            uint32_t narrow = c == 'p'   ? (v & 1 ? ~0u : 0)
                              : c == 'h' ? (uint32_t)v & 0xffff
                              : c == 'c' ? (uint32_t)v & 1
                                         : (uint32_t)v;
            if (c == '8')
                memcpy(to[k] + (size_t)i * 8, &v, 8);
            else
                memcpy(to[k] + (size_t)i * 4, &narrow, 4);
        }
    if (shape[n - 1] == 'c') /* the flag is the last operand, wherever the others end */
        for (unsigned i = 0; i < SIM_LANES; i++) {
            uint32_t flag = (uint32_t)rng_u64(r, 900 + i) & 1;
            memcpy(s->e + (size_t)i * 4, &flag, 4);
        }
    memset(s->d, 0x5a, sizeof s->d);
}

static void compare(const char *name, const struct lane_op *table, size_t n) {
    int wrong = 0;
    CHECKF(n == lanes_any_count, "%s has %zu operations, not %zu", name, n, lanes_any_count);
    for (size_t i = 0; i < n; i++) {
        const struct lane_op *x = &lanes_any[i], *y = &table[i];
        CHECKF(!strcmp(x->name, y->name), "%s and %s", x->name, y->name);
        struct rng r = rng_stream(7, str_view(x->name));
        for (unsigned k = 0; k < ROUNDS && wrong < 10; k++) {
            static struct state s, t;
            fill(&s, rng_sub(r, k), x->shape);
            t = s;
            x->fn(s.d, s.a, s.b, s.c, s.e);
            y->fn(t.d, t.a, t.b, t.c, t.e);
            bool same = memcmp(s.d, t.d, sizeof s.d) == 0 && memcmp(s.e, t.e, sizeof s.e) == 0;
            wrong += !same;
            CHECKF(same, "%s: %s differs", name, x->name);
        }
    }
}

static void test_tables(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        compare("avx2", lanes_x86v3, lanes_x86v3_count);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        compare("avx512", lanes_x86v4, lanes_x86v4_count);
#endif
    size_t n;
    CHECK(lanes_table(&n) && n == lanes_any_count);
}

static const struct tap_case cases[] = {
    {"every operation gives the same bits on every CPU", test_tables},
};
TAP_CASES(cases)
