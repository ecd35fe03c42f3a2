// The larger; NaN when either is, as in PyTorch.
static __device__ __forceinline__ float cp_maximum(float a, float b) {
    return a > b || a != a ? a : b;
}
