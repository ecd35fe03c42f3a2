#include "base/hash.h"
#include "base/rng.h"
#include "tap.h"

#include <stdlib.h>

/* The device half, compiled for the host: each intrinsic is one rounded operation. */
static long long bits_of(double x) {
    long long b;
    memcpy(&b, &x, sizeof b);
    return b;
}
static double of_bits(long long b) {
    double x;
    memcpy(&x, &b, sizeof x);
    return x;
}
#define __device__
#define __dmul_rn(a, b)         ((double)(a) * (double)(b))
#define __dadd_rn(a, b)         ((double)(a) + (double)(b))
#define __ddiv_rn(a, b)         ((double)(a) / (double)(b))
#define __dsqrt_rn(a)           sqrt(a)
#define __fmul_rn(a, b)         ((float)(a) * (float)(b))
#define __double_as_longlong(x) bits_of(x)
#define __longlong_as_double(x) of_bits(x)
#include "../../assets/rng/philox.cuh"

/* Random123's vector for counter 0 and key 0; its others set counter words that ours keeps zero. */
static void known_answers(void) {
    uint32_t w[4];
    rng_block((struct rng){{0, 0}}, 0, w);
    CHECK(w[0] == 0x6627e8d5 && w[1] == 0xe169c58d && w[2] == 0xbc57ac4c && w[3] == 0x9b00dbd8);
    CHECK(rng_u64((struct rng){{0, 0}}, 0) == 0xe169c58d6627e8d5);
}

static void streams_differ(void) {
    struct rng a = rng_stream(1, S("x")), b = rng_stream(1, S("y")), c = rng_stream(2, S("x"));
    CHECK(rng_u64(a, 0) == rng_u64(rng_stream(1, S("x")), 0));
    CHECK(rng_u64(a, 0) != rng_u64(b, 0) && rng_u64(a, 0) != rng_u64(c, 0));
    CHECK(rng_u64(a, 0) != rng_u64(a, 1) && rng_u64(a, 0) != rng_u64(a, 1ull << 32));
    struct rng s0 = rng_sub(a, 0), s1 = rng_sub(a, 1);
    CHECK(memcmp(&s0, &s1, sizeof s0) != 0 && memcmp(&s0, &a, sizeof s0) != 0);
    CHECK(rng_u64(s0, 0) != rng_u64(s1, 0));
    CHECK(((uint64_t)s0.key[1] << 32 | s0.key[0]) != rng_u64(a, 0));
}

static void uniforms(void) {
    struct rng r = rng_stream(7, S("uniform"));
    double sum = 0, sum24 = 0;
    bool inside = true;
    int counts[10] = {0};
    enum { N = 100000 };
    for (uint64_t i = 0; i < N; i++) {
        double u = rng_unit(r, i);
        float f = rng_unit24(r, i);
        inside = inside && u >= 0 && u < 1 && f >= 0 && f < 1;
        inside = inside && u * 0x1p53 == floor(u * 0x1p53) && f * 0x1p24f == floorf(f * 0x1p24f);
        sum += u;
        sum24 += f;
        uint64_t k = rng_below(r, i, 10);
        inside = inside && k < 10;
        counts[k % 10]++;
    }
    CHECK(inside);
    CHECK(fabs(sum / N - 0.5) < 0.005 && fabs(sum24 / N - 0.5) < 0.005);
    for (int k = 0; k < 10; k++)
        CHECKF(abs(counts[k] - N / 10) < 500, "%d: %d", k, counts[k]);
    CHECK(rng_below(r, 3, 1) == 0);
    CHECK(rng_below(r, 3, UINT64_MAX) <= rng_u64(r, 3));
}

static double upper_tail(double x) {
    return 0.5 * erfc(x / sqrt(2.0));
}

static void normals(void) {
    struct rng r = rng_stream(7, S("normal"));
    double moments[5] = {0};
    enum { N = 200000 };
    for (uint64_t i = 0; i < N; i++) {
        double x = rng_normal(r, i), power = 1;
        double u = ((double)(rng_u64(r, i) >> 12) + 0.5) * 0x1p-52;
        double tail = x < 0 ? u : 1 - u;
        CHECKF(fabs(upper_tail(fabs(x)) / tail - 1) < 1e-13, "position %llu: %.17g",
               (unsigned long long)i, x);
        for (int k = 1; k < 5; k++)
            moments[k] += (power *= x) / N;
    }
    CHECK(fabs(moments[1]) < 0.01 && fabs(moments[2] - 1) < 0.015);
    CHECK(fabs(moments[3]) < 0.05 && fabs(moments[4] - 3) < 0.1);
}

/* Down to the smallest tail there is, 2^-53. */
static void far_tails(void) {
    for (double tail = 0.074; tail >= 0x1p-53; tail *= 0.93) {
        double x = philox_tail(tail);
        CHECKF(fabs(upper_tail(x) / tail - 1) < 1e-13, "tail %g: %.17g", tail, x);
        CHECKF(fabs(philox_log(tail) / log(tail) - 1) < 4e-16, "ln %g", tail);
    }
    CHECK(philox_tail(0x1p-53) < 8.3 && philox_tail(0x1p-53) > 8.2);
}

static bool same_bits(double a, double b) {
    return bits_of(a) == bits_of(b);
}

static void halves_agree(void) {
    struct rng r = rng_stream(99, S("halves"));
    uint32_t a[4];
    unsigned int b[4];
    for (uint64_t n = 0; n < 100000; n++) {
        uint64_t i = n < 50000 ? n : n * 0x9E3779B97F4A7C15ull;
        rng_block(r, i, a);
        philox_block(r.key[0], r.key[1], i, b);
        CHECKF(memcmp(a, b, sizeof a) == 0, "block %llu", (unsigned long long)i);
        CHECKF(same_bits(rng_unit(r, i), philox_unit(r.key[0], r.key[1], i)), "unit %llu",
               (unsigned long long)i);
        CHECKF(rng_unit24(r, i) == philox_unit24(r.key[0], r.key[1], i), "unit24 %llu",
               (unsigned long long)i);
        CHECKF(same_bits(rng_normal(r, i), philox_normal(r.key[0], r.key[1], i)), "normal %llu",
               (unsigned long long)i);
    }
}

/* What an H200 made of philox.cuh under nvcc 13.0 --use_fast_math: positions of the stream with key
 * 0 that fall into the last branch of AS241 (one in 10^11 does; a search over 2^40 found them), and
 * the digest of the first 2^21 normals, units and 24-bit units of another. */
static void gpu_golden(void) {
    static const struct {
        uint64_t position;
        double value;
    } rows[] = {
        {53403590643, 6.9672350779368122},   {67095488922, 6.8124873559536887},
        {82288518052, -6.7828118915466344},  {112359661875, 6.9651237024827042},
        {204804173092, -6.8274974576627541}, {705303410225, 7.3941360828814524},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK(same_bits(rng_normal((struct rng){{0, 0}}, rows[i].position), rows[i].value));
        CHECK(same_bits(philox_normal(0, 0, rows[i].position), rows[i].value));
    }
    struct rng r = {{0x12345678, 0x9abcdef0}};
    struct sha256 h;
    char hex[65];
    sha256_init(&h);
    for (uint64_t i = 0; i < 1 << 21; i++) {
        double x = rng_normal(r, i);
        sha256_put(&h, &x, sizeof x);
    }
    for (uint64_t i = 0; i < 1 << 21; i++) {
        double u = rng_unit(r, i);
        sha256_put(&h, &u, sizeof u);
    }
    for (uint64_t i = 0; i < 1 << 21; i++) {
        float f = rng_unit24(r, i);
        sha256_put(&h, &f, sizeof f);
    }
    digest_hex(sha256_end(&h), hex);
    CHECKF(strcmp(hex, "f7c4b37e08e390f12c93075e3d1348339e37d60524b76a69c1f9cdee4b1d94e0") == 0,
           "%s", hex);
}

/* Every length up to a few vectors and over the edge of a block; across the counter's low word; and
 * where normals are far out. */
static void many_are_the_same(void) {
    static const struct {
        uint64_t first;
        size_t n;
    } rows[] = {{0, 5000},
                {3, 255},
                {7, 256},
                {7, 257},
                {(UINT64_C(1) << 32) - 100, 300},
                {53403590640, 9},
                {204804173090, 64},
                {705303410200, 300}};
    static uint64_t bits[5000];
    static double units[5000], values[5000];
    for (size_t k = 0; k < sizeof rows / sizeof *rows + 40; k++) {
        bool listed = k < sizeof rows / sizeof *rows;
        uint64_t first = listed ? rows[k].first : 11;
        size_t n = listed ? rows[k].n : k;
        struct rng r = {{0, 0}};
        rng_u64_many(r, first, n, bits);
        rng_unit_many(r, first, n, units);
        rng_normal_many(r, first, n, values);
        bool same = true;
        for (size_t i = 0; i < n; i++)
            same &= bits[i] == rng_u64(r, first + i) &&
                    same_bits(units[i], rng_unit(r, first + i)) &&
                    same_bits(values[i], rng_normal(r, first + i));
        CHECKF(same, "%zu from %llu", n, (unsigned long long)first);
    }
}

/* Every number once, and each about equally often at every place. */
static void orders(void) {
    enum { N = 5, DRAWS = 2000 };
    size_t order[N], at[N][N] = {{0}};
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        unsigned seen = 0;
        rng_order(rng_stream(seed, S("order")), N, order);
        for (size_t i = 0; i < N; i++) {
            seen |= 1u << order[i];
            at[i][order[i]]++;
        }
        CHECK(seen == (1u << N) - 1);
    }
    for (size_t i = 0; i < N * N; i++)
        CHECKF(at[i / N][i % N] > DRAWS / N * 3 / 4 && at[i / N][i % N] < DRAWS / N * 5 / 4,
               "%zu at %zu: %zu times", i % N, i / N, at[i / N][i % N]);
}

static void secrets(void) {
    uint64_t a = 0, b = 0;
    CHECK(rng_secret(&a) && rng_secret(&b) && a != b);
}

static const struct tap_case cases[] = {
    {"Random123's known answer", known_answers},
    {"streams differ by seed, name and index", streams_differ},
    {"uniforms", uniforms},
    {"normals are the quantiles of their uniforms", normals},
    {"far tails", far_tails},
    {"host and device halves agree bit for bit", halves_agree},
    {"the bits a GPU made", gpu_golden},
    {"many at a time are the same", many_are_the_same},
    {"orders are drawn", orders},
    {"secrets", secrets},
};
TAP_CASES(cases)
