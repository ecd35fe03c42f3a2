static __device__ __forceinline__ float cp_fast_expm1(float x) {
    return __expf(x) - 1.0f;
}
