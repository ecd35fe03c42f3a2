/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3; 2011) and
 * the normal quantile AS241 (Wichura, 1988).
 *
 * assets/rng/philox.cuh does the same operations in the same order. Change both or neither: inputs
 * are made on the CPU and on the GPU and must be the same bits. The third word of the counter tells
 * what a block is for: 0 numbers, 1 the keys of sub-streams. */
#include "base/wide.h"

#include "base/rng.h"

#include "base/err.h"
#include "base/hash.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { USE_NUMBERS = 0, USE_KEYS = 1 };

#define FACTOR_0 0xD2511F53u
#define FACTOR_1 0xCD9E8D57u
#define STEP_0   0x9E3779B9u
#define STEP_1   0xBB67AE85u

static inline void philox(struct rng r, uint64_t position, uint32_t use, uint32_t out[4]) {
    uint32_t c0 = (uint32_t)position, c1 = (uint32_t)(position >> 32), c2 = use, c3 = 0;
    uint32_t k0 = r.key[0], k1 = r.key[1];
#pragma GCC unroll 10 /* verification makes tens of millions of these: a third less time */
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)FACTOR_0 * c0, b = (uint64_t)FACTOR_1 * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += STEP_0;
        k1 += STEP_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

struct rng rng_stream(uint64_t seed, str name) {
    struct sha256 h;
    struct rng r = {{0, 0}};
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(seed >> (8 * i));
    sha256_init(&h);
    sha256_put(&h, bytes, sizeof bytes);
    sha256_put_str(&h, name);
    digest d = sha256_end(&h);
    for (int i = 0; i < 8; i++)
        r.key[i / 4] |= (uint32_t)d.b[i] << (8 * (i % 4));
    return r;
}

struct rng rng_sub(struct rng r, uint64_t index) {
    uint32_t w[4];
    philox(r, index, USE_KEYS, w);
    return (struct rng){{w[0], w[1]}};
}

void rng_block(struct rng r, uint64_t position, uint32_t out[4]) {
    philox(r, position, USE_NUMBERS, out);
}

uint64_t rng_u64(struct rng r, uint64_t position) {
    uint32_t w[4];
    rng_block(r, position, w);
    return (uint64_t)w[1] << 32 | w[0];
}

double rng_unit(struct rng r, uint64_t position) {
    return (double)(rng_u64(r, position) >> 11) * 0x1p-53;
}

float rng_unit24(struct rng r, uint64_t position) {
    uint32_t w[4];
    rng_block(r, position, w);
    return (float)(w[0] >> 8) * 0x1p-24f;
}

uint64_t rng_below(struct rng r, uint64_t position, uint64_t n) {
    BUG_IF(n == 0);
    return (uint64_t)((unsigned __int128)rng_u64(r, position) * n >> 64);
}

/* Highest power first. */
static inline double polynomial(const double *c, size_t n, double x) {
    double v = c[0];
#pragma GCC unroll 10
    for (size_t i = 1; i < n; i++)
        v = v * x + c[i];
    return v;
}

/* ln(x) of a normal positive x: x = m·2^e with m in (√½, √2], and ln(m) = 2·artanh((m-1)/(m+1)) by
 * its series, whose next term is below 2^-59 of the sum. */
static inline double natural_log(double x) {
    static const double series[11] = {2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11,
                                      2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3,  2.0};
    uint64_t bits;
    double m;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
    memcpy(&m, &bits, sizeof m);
    bool above = m > 1.4142135623730951;
    m = above ? m * 0.5 : m;
    e = above ? e + 1 : e;
    double s = (m - 1.0) / (m + 1.0);
    return (double)e * 0.6931471805599453 + s * polynomial(series, 11, s * s);
}

/* AS241's PPND16: |q| <= 0.425, then sqrt(-ln(tail)) up to 5, then beyond. */
static const double centre_num[8] = {2.5090809287301226727e+3, 3.3430575583588128105e+4,
                                     6.7265770927008700853e+4, 4.5921953931549871457e+4,
                                     1.3731693765509461125e+4, 1.9715909503065514427e+3,
                                     1.3314166789178437745e+2, 3.3871328727963666080e+0};
static const double centre_den[8] = {5.2264952788528545610e+3, 2.8729085735721942674e+4,
                                     3.9307895800092710610e+4, 2.1213794301586595867e+4,
                                     5.3941960214247511077e+3, 6.8718700749205790830e+2,
                                     4.2313330701600911252e+1, 1.0};
static const double middle_num[8] = {7.74545014278341407640e-4, 2.27238449892691845833e-2,
                                     2.41780725177450611770e-1, 1.27045825245236838258e+0,
                                     3.64784832476320460504e+0, 5.76949722146069140550e+0,
                                     4.63033784615654529590e+0, 1.42343711074968357734e+0};
static const double middle_den[8] = {1.05075007164441684324e-9, 5.47593808499534494600e-4,
                                     1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                     6.89767334985100004550e-1, 1.67638483018380384940e+0,
                                     2.05319162663775882187e+0, 1.0};
static const double far_num[8] = {2.01033439929228813265e-7, 2.71155556874348757815e-5,
                                  1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                  2.96560571828504891230e-1, 1.78482653991729133580e+0,
                                  5.46378491116411436990e+0, 6.65790464350110377720e+0};
static const double far_den[8] = {2.04426310338993978564e-15, 1.42151175831644588870e-7,
                                  1.84631831751005468180e-5,  7.86869131145613259100e-4,
                                  1.48753612908506148525e-2,  1.36929880922735805310e-1,
                                  5.99832206555887937690e-1,  1.0};

/* The quantile at u = ½ + q near the middle, and further out by u's distance from its end. */
static inline double quantile_centre(double q) {
    double t = 0.180625 - q * q;
    return polynomial(centre_num, 8, t) * q / polynomial(centre_den, 8, t);
}

static inline double quantile_middle(double t) {
    t = t - 1.6;
    return polynomial(middle_num, 8, t) / polynomial(middle_den, 8, t);
}

static inline double quantile_far(double t) {
    t = t - 5.0;
    return polynomial(far_num, 8, t) / polynomial(far_den, 8, t);
}

/* sqrt(-ln(tail)), the tail beyond ½ + q. */
static inline double tail_of(double q) {
    double u = q + 0.5;
    return sqrt(-natural_log(q < 0.0 ? u : 1.0 - u));
}

#define CENTRE 0.425
#define MIDDLE 5.0

/* u is an odd multiple of 2^-53, so u, 1-u and u-½ are all exact and the result is symmetric. */
double rng_normal(struct rng r, uint64_t position) {
    double q = ((double)(rng_u64(r, position) >> 12) + 0.5) * 0x1p-52 - 0.5;
    if (fabs(q) <= CENTRE)
        return quantile_centre(q);
    double t = tail_of(q), x = t <= MIDDLE ? quantile_middle(t) : quantile_far(t);
    return q < 0.0 ? -x : x;
}

/* ---- many at a time ---- */

enum { MANY = 256 }; /* what passes from one loop to the next stays in the cache */

#if defined(__x86_64__)

/* Numbers of 32 bits in lanes of 64, where the product of two needs no shuffle; what their upper
 * halves hold, the product does not read. gcc makes three multiplications of one in plain C. */
struct philox4 {
    __m256i c0, c1, c2, c3;
};

__attribute__((target("avx2"))) static inline void philox4_round(struct philox4 *p, __m256i k0,
                                                                 __m256i k1) {
    __m256i a = _mm256_mul_epu32(p->c0, _mm256_set1_epi64x(FACTOR_0));
    __m256i b = _mm256_mul_epu32(p->c2, _mm256_set1_epi64x(FACTOR_1));
    p->c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(b, 32), p->c1), k0);
    p->c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(a, 32), p->c3), k1);
    p->c1 = b;
    p->c3 = a;
}

__attribute__((target("avx2"))) static inline struct philox4 philox4_start(uint64_t position) {
    __m256i at =
        _mm256_add_epi64(_mm256_set1_epi64x((int64_t)position), _mm256_setr_epi64x(0, 1, 2, 3));
    return (struct philox4){at, _mm256_srli_epi64(at, 32), _mm256_set1_epi64x(USE_NUMBERS),
                            _mm256_setzero_si256()};
}

/* rng_u64's bits: the words are the lower halves. */
__attribute__((target("avx2"))) static inline void philox4_store(const struct philox4 *p,
                                                                 uint64_t *out) {
    __m256i low = _mm256_blend_epi32(p->c0, _mm256_setzero_si256(), 0xAA);
    _mm256_storeu_si256((__m256i *)out, _mm256_or_si256(_mm256_slli_epi64(p->c1, 32), low));
}

/* Two fours at a time hide each other's latency. Returns how many it made. */
__attribute__((target("avx2"))) static size_t u64_eights(struct rng r, uint64_t first, size_t n,
                                                         uint64_t *out) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        struct philox4 x = philox4_start(first + i), y = philox4_start(first + i + 4);
        uint32_t k0 = r.key[0], k1 = r.key[1];
        for (int round = 0; round < 10; round++, k0 += STEP_0, k1 += STEP_1) {
            philox4_round(&x, _mm256_set1_epi64x(k0), _mm256_set1_epi64x(k1));
            philox4_round(&y, _mm256_set1_epi64x(k0), _mm256_set1_epi64x(k1));
        }
        philox4_store(&x, out + i);
        philox4_store(&y, out + i + 4);
    }
    return i;
}

static size_t u64_wide(struct rng r, uint64_t first, size_t n, uint64_t *out) {
    return __builtin_cpu_supports("avx2") ? u64_eights(r, first, n, out) : 0;
}

#else

static size_t u64_wide(struct rng r, uint64_t first, size_t n, uint64_t *out) {
    (void)r, (void)first, (void)n, (void)out;
    return 0;
}

#endif

void rng_u64_many(struct rng r, uint64_t first, size_t n, uint64_t *out) {
    for (size_t i = u64_wide(r, first, n, out); i < n; i++)
        out[i] = rng_u64(r, first + i);
}

/* An integer below 2^52 as a double, without the conversion that vectors lack. */
static inline double whole(uint64_t v) {
    double d;
    v |= 0x4330000000000000ull; /* 2^52 + v */
    memcpy(&d, &v, sizeof d);
    return d - 0x1p52;
}

WIDE static void units_of(const uint64_t *bits, size_t n, double *out) {
    for (size_t i = 0; i < n; i++)
        out[i] = (whole(bits[i] >> 43) * 0x1p32 + whole(bits[i] >> 11 & 0xFFFFFFFFu)) * 0x1p-53;
}

void rng_unit_many(struct rng r, uint64_t first, size_t n, double *out) {
    uint64_t bits[MANY];
    for (size_t at = 0; at < n; at += MANY) {
        size_t some = n - at < MANY ? n - at : MANY;
        rng_u64_many(r, first + at, some, bits);
        units_of(bits, some, out + at);
    }
}

/* As if all were near the middle; q remains. */
WIDE static void centres_of(const uint64_t *bits, size_t n, double *q, double *out) {
    for (size_t i = 0; i < n; i++) {
        q[i] = (whole(bits[i] >> 12) + 0.5) * 0x1p-52 - 0.5;
        out[i] = quantile_centre(q[i]);
    }
}

WIDE static void tails_of(const double *q, size_t n, double *t, double *out) {
    for (size_t i = 0; i < n; i++) {
        t[i] = tail_of(q[i]);
        double x = quantile_middle(t[i]);
        out[i] = q[i] < 0.0 ? -x : x;
    }
}

/* One in seven lies further out: these are brought together, so that they too are an array. */
static void redo_tails(const double *q, size_t n, double *out) {
    double tail[MANY], t[MANY], x[MANY];
    uint32_t place[MANY + 1];
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        place[found] = (uint32_t)i;
        found += fabs(q[i]) > CENTRE;
    }
    for (size_t k = 0; k < found; k++)
        tail[k] = q[place[k]];
    tails_of(tail, found, t, x);
    for (size_t k = 0; k < found; k++)
        out[place[k]] = t[k] <= MIDDLE ? x[k] : copysign(quantile_far(t[k]), tail[k]);
}

void rng_normal_many(struct rng r, uint64_t first, size_t n, double *out) {
    uint64_t bits[MANY];
    double q[MANY];
    for (size_t at = 0; at < n; at += MANY) {
        size_t some = n - at < MANY ? n - at : MANY;
        rng_u64_many(r, first + at, some, bits);
        centres_of(bits, some, q, out + at);
        redo_tails(q, some, out + at);
    }
}

bool rng_secret(uint64_t *out) {
    ssize_t n;
    do
        n = getrandom(out, sizeof *out, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *out;
}

void rng_order(struct rng r, size_t n, size_t *out) {
    for (size_t i = 0; i < n; i++) {
        size_t k = (size_t)rng_below(r, i, i + 1);
        out[i] = i;
        out[i] = out[k];
        out[k] = i;
    }
}
