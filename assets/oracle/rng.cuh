// base/rng.h by its own names: the streams that data are made from. The long functions stand apart:
// the kinds of data call them from dozens of places.
struct rng {
    uint32_t key[2];
};

__device__ __noinline__ static uint64_t rng_u64(rng r, uint64_t position) {
    return philox_u64(r.key[0], r.key[1], position);
}

__device__ static inline double rng_unit(rng r, uint64_t position) {
    return (double)(rng_u64(r, position) >> 11) * 0x1p-53;
}

__device__ __noinline__ static double rng_normal(rng r, uint64_t position) {
    return ANY_NORMAL ? philox_normal(r.key[0], r.key[1], position) : 0;
}

__device__ static inline uint64_t rng_below(rng r, uint64_t position, uint64_t n) {
    return __umul64hi(rng_u64(r, position), n);
}
