//% library
// Tiles of f16 parts are scaled by powers of two, of which exponents are kept. This one says of a tile
// that f16 does not hold its numbers.
static constexpr int GEMM_WIDE = 1 << 16;
// Of the exponents of two tiles that are multiplied, added up.
static __device__ __forceinline__ bool gemm_is_wide(int shift) { return shift > GEMM_WIDE / 2; }
// What their product is multiplied by to undo it.
static __device__ __forceinline__ float gemm_unit(int shift) {
    return __uint_as_float((unsigned)(127 - shift) << 23);
}
