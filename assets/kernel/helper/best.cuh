// The place of the first extreme; NaN is more extreme than every number.
template <class T, bool kLargest> struct cp_best {
    T value = 0;
    long long at = -1;
    bool some = false;
    static __device__ __forceinline__ bool before(T x, long long px, T y, long long py) {
        if (x != x || y != y)
            return x != x && (y == y || px < py);
        return x == y ? px < py : kLargest ? x > y : x < y;
    }
    __device__ __forceinline__ void add(T x, long long place) {
        if (some && !before(x, place, value, at))
            return;
        value = x;
        at = place;
        some = true;
    }
    __device__ __forceinline__ void join_warp() {
        for (int d = 16; d > 0; d /= 2) {
            const T x = __shfl_xor_sync(0xffffffffu, value, d);
            const long long place = __shfl_xor_sync(0xffffffffu, at, d);
            if (__shfl_xor_sync(0xffffffffu, (int)some, d))
                add(x, place);
        }
    }
};
