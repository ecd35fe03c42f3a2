static __device__ __forceinline__ float cp_fast_sigmoid(float x) {
    return __fdividef(1.0f, 1.0f + __expf(-x));
}
