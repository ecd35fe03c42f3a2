// Division of integers, rounded down.
static __device__ __forceinline__ long long cp_floordiv(long long a, long long b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
