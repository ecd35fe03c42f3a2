/* The tile engine for any CPU, and the choice between the engines. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math") /* nobody reads the exception flags */
#endif
#define TILE_ENGINE tile_engine_any
#include "sim/tile_engine.inc"

const struct tile_engine *tile_engine_get(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &tile_engine_x86v3;
#endif
    return &tile_engine_any;
}
