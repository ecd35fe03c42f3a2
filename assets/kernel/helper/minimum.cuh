// The smaller; NaN when either is, as in PyTorch.
static __device__ __forceinline__ float cp_minimum(float a, float b) {
    return a < b || a != a ? a : b;
}
