// The type of one access of so many bytes, 16 at the most.
template <int BYTES> struct cp_word {
    typedef uint4 type;
};
template <> struct cp_word<8> {
    typedef uint2 type;
};
template <> struct cp_word<4> {
    typedef unsigned int type;
};
template <> struct cp_word<2> {
    typedef unsigned short type;
};
template <> struct cp_word<1> {
    typedef unsigned char type;
};

// N neighbouring elements.
template <class T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) cp_pack {
    typedef typename cp_word<N * sizeof(T)>::type word;
    T at[N];
};
template <int N, class T> static __device__ __forceinline__ cp_pack<T, N> cp_load(const T *p) {
    typedef typename cp_pack<T, N>::word word;
    cp_pack<T, N> v;
    const word *from = reinterpret_cast<const word *>(p);
#pragma unroll
    for (int w = 0; w < int(sizeof v / sizeof(word)); w++)
        reinterpret_cast<word *>(v.at)[w] = ${loaded};
    return v;
}
template <int N, class T>
static __device__ __forceinline__ void cp_store(T *p, const cp_pack<T, N> &v) {
    typedef typename cp_pack<T, N>::word word;
    const word *from = reinterpret_cast<const word *>(v.at);
    word *to = reinterpret_cast<word *>(p);
#pragma unroll
    for (int w = 0; w < int(sizeof v / sizeof(word)); w++)
        ${store};
}

