static __device__ __forceinline__ float cp_cube(float x) {
    return x * x * x;
}
