/* The operations for x86-64 with AVX-512: the same source, other instructions, equal bits. */
typedef int lanes_x86v4_not_empty;
#if defined(__x86_64__)
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi,bmi2,lzcnt,popcnt"))),  \
    apply_to = function)
#else
#pragma GCC optimize("O3", "no-trapping-math") /* nobody reads the exception flags */
#pragma GCC target(                                                                                \
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi,bmi2,lzcnt,popcnt,prefer-vector-width=512")
#endif
#define LANES_TABLE lanes_x86v4
#include "sim/lanes.inc"
#if defined(__clang__)
#pragma clang attribute pop
#endif

const size_t lanes_x86v4_count = sizeof lanes_x86v4 / sizeof *lanes_x86v4;
#endif
