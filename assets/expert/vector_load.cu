static __device__ __forceinline__ ${vector} ${function}(const ${type} *p) {
    ${vector} v;
#pragma unroll
    for (int w = 0; w < ${words}; w++)
        reinterpret_cast<${word} *>(v.at)[w] = ${access};
    return v;
}
