// a times 2 to the `by`.
static __device__ __forceinline__ long long cp_shl(long long a, long long by) {
    return (long long)((unsigned long long)a << by);
}
