/* The operations for x86-64 with AVX2 and FMA: the same source, other instructions, equal bits. */
typedef int lanes_x86v3_not_empty;
#if defined(__x86_64__)
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2,lzcnt,popcnt"))),            \
                             apply_to = function)
#else
#pragma GCC optimize("O3", "no-trapping-math") /* nobody reads the exception flags */
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt,popcnt")
#endif
#define LANES_TABLE lanes_x86v3
#include "sim/lanes.inc"
#if defined(__clang__)
#pragma clang attribute pop
#endif

const size_t lanes_x86v3_count = sizeof lanes_x86v3 / sizeof *lanes_x86v3;
#endif
