static __device__ __forceinline__ long long cp_larger(long long a, long long b) {
    return a > b ? a : b;
}
