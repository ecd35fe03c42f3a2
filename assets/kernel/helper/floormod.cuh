// Remainder of the division rounded down: it has the sign of b.
static __device__ __forceinline__ long long cp_floormod(long long a, long long b) {
    long long r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
