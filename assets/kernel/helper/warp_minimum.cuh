// The smallest over the lanes of a warp, in each of them; NaN when one is.
template <class T> static __device__ __forceinline__ T cp_warp_minimum(T v) {
    for (int d = 16; d > 0; d /= 2) {
        const T o = __shfl_xor_sync(0xffffffffu, v, d);
        v = v < o || v != v ? v : o;
    }
    return v;
}
