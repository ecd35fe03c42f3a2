//% library
static __device__ __forceinline__ ${vector} ${function}(const ${type} *p) {
    ${vector} v;
    ${moves}
    return v;
}
