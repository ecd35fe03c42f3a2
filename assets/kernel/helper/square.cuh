static __device__ __forceinline__ float cp_square(float x) {
    return x * x;
}
