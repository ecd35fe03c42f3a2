/* The operations for any CPU, and the choice between the tables. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math") /* nobody reads the exception flags */
#endif
#define LANES_TABLE lanes_any
#include "sim/lanes.inc"

const size_t lanes_any_count = sizeof lanes_any / sizeof *lanes_any;

const struct lane_op *lanes_table(size_t *count) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        *count = lanes_x86v4_count;
        return lanes_x86v4;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        *count = lanes_x86v3_count;
        return lanes_x86v3;
    }
#endif
    *count = lanes_any_count;
    return lanes_any;
}
