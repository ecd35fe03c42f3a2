static __device__ __forceinline__ void ${function}(${type} *p, const ${vector} &v) {
#pragma unroll
    for (int w = 0; w < ${words}; w++)
        ${access};
}
