// The product over the lanes of a warp, in each of them.
template <class T> static __device__ __forceinline__ T cp_warp_product(T v) {
    for (int d = 16; d > 0; d /= 2)
        v *= __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}
