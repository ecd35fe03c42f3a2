//% library
static __device__ __forceinline__ ${type} ${combine}(${type} a, ${type} b) {
    return ${combined};
}

//% if inner
// Each lane gets the combination of all lanes up to itself.
static __device__ __forceinline__ ${type} ${warp_scan}(${type} v) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const ${type} earlier = __shfl_up_sync(0xffffffffu, v, d);
        v = lane < d ? v : ${combine}(earlier, v);
    }
    return v;
}
//% end
