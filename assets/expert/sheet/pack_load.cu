//% library
template <int N, class T> static __device__ __forceinline__ cp_pack<T, N> cp_load(const T *p) {
    typedef typename cp_pack<T, N>::word word;
    cp_pack<T, N> v;
    const word *from = reinterpret_cast<const word *>(p);
#pragma unroll
    for (int w = 0; w < int(sizeof v / sizeof(word)); w++)
        reinterpret_cast<word *>(v.at)[w] = ${loaded};
    return v;
}
