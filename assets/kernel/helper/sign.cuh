static __device__ __forceinline__ float cp_sign(float x) {
    return float((x > 0.0f) - (x < 0.0f));
}
