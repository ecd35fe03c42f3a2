//% library
//% if cp_pack
// The type of one access of so many bytes, 16 at the most.
template <int BYTES> struct cp_word { typedef uint4 type; };
template <> struct cp_word<8> { typedef uint2 type; };
template <> struct cp_word<4> { typedef unsigned int type; };
template <> struct cp_word<2> { typedef unsigned short type; };
template <> struct cp_word<1> { typedef unsigned char type; };

// N neighbouring elements.
template <class T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) cp_pack {
    typedef typename cp_word<N * sizeof(T)>::type word;
    T at[N];
};
//% end
//% if cp_load
template <int N, class T> static __device__ __forceinline__ cp_pack<T, N> cp_load(const T *p) {
    typedef typename cp_pack<T, N>::word word;
    cp_pack<T, N> v;
    const word *from = reinterpret_cast<const word *>(p);
#pragma unroll
    for (int w = 0; w < int(sizeof v / sizeof(word)); w++)
//% if stream
        reinterpret_cast<word *>(v.at)[w] = __ldcs(from + w);
//% else
        reinterpret_cast<word *>(v.at)[w] = from[w];
//% end
    return v;
}
//% end
//% if cp_store
template <int N, class T>
static __device__ __forceinline__ void cp_store(T *p, const cp_pack<T, N> &v) {
    typedef typename cp_pack<T, N>::word word;
    const word *from = reinterpret_cast<const word *>(v.at);
    word *to = reinterpret_cast<word *>(p);
#pragma unroll
    for (int w = 0; w < int(sizeof v / sizeof(word)); w++)
//% if stream
        __stcs(to + w, from[w]);
//% else
        to[w] = from[w];
//% end
}
//% end
//% if cp_reload
// N neighbours that others will read again: caches may keep them.
template <int N, class T> static __device__ __forceinline__ cp_pack<T, N> cp_reload(const T *p) {
    return *reinterpret_cast<const cp_pack<T, N> *>(p);
}
//% end
//% if cp_packs
// Registers for ITEMS packs of N neighbours: (neighbour, pack).
template <class T, int N, int ITEMS> static __device__ __forceinline__ auto cp_packs() {
    return cute::make_tensor<T>(cute::Shape<cute::Int<N>, cute::Int<ITEMS>>{});
}
//% end
//% if cp_vectors
// As many bytes at once as N neighbours have, 16 at the most: they lie at multiples of that.
template <class T, int N>
using cp_vectors =
    cute::AutoVectorizingCopyWithAssumedAlignment<(8 * N * sizeof(T) < 128 ? 8 * N * sizeof(T) : 128)>;
//% end
