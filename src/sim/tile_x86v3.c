/* The tile engine for x86-64 with AVX2 and FMA: the same source, other instructions, equal bits. */
typedef int tile_x86v3_not_empty;
#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt"))),       \
                             apply_to = function)
#else
#pragma GCC optimize("O3", "no-trapping-math") /* nobody reads the exception flags */
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
#endif
#define MAX8(x, y) ((v8i)_mm256_max_epi32((__m256i)(x), (__m256i)(y)))
#define ANY8(x)    (!_mm256_testz_si256((__m256i)(x), (__m256i)(x)))
/* One instruction each, of which gcc makes four. */
#define TO_DOUBLES(x) ((v4d)_mm256_cvtepi32_pd((__m128i)(x)))
#define TO_LONGS(x)   ((v4l)_mm256_cvtepi32_epi64((__m128i)(x)))
#define TO_FLOATS(x)  ((v4f)_mm256_cvtpd_ps((__m256d)(x)))
#define JOIN8(x, y)   ((v8f)_mm256_set_m128((__m128)(y), (__m128)(x)))
/* Eight halves, each in the lower bits of a word, to floats. A NaN keeps its payload, which nobody
 * looks at. Every CPU with AVX2 has this instruction. */
#define HALVES8(words)                                                                             \
    _mm256_cvtph_ps(                                                                               \
        _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)))
#define TILE_ENGINE tile_engine_x86v3
#include "sim/tile_engine.inc"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
