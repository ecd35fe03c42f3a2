//% library
template <int N, class T>
static __device__ __forceinline__ void cp_store(T *p, const cp_pack<T, N> &v) {
    typedef typename cp_pack<T, N>::word word;
    const word *from = reinterpret_cast<const word *>(v.at);
    word *to = reinterpret_cast<word *>(p);
#pragma unroll
    for (int w = 0; w < int(sizeof v / sizeof(word)); w++)
        ${store};
}
