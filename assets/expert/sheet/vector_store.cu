//% library
static __device__ __forceinline__ void ${function}(${type} *p, const ${vector} &v) {
    ${moves}
}
