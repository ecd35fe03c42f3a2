//% library
//% if cp_cached
// How a word is read that others read as well, or that caches may keep.
struct cp_cached {
    template <class W> static __device__ __forceinline__ W read(const W *p) { return *p; }
};
//% end
//% if cp_streamed
// How a word is read that nobody reads again.
struct cp_streamed {
    template <class W> static __device__ __forceinline__ W read(const W *p) { return __ldcs(p); }
};
//% end
//% if cp_fetch
// N neighbours, in one access where they have 16 bytes or less.
template <int N, class HOW, class T>
static __device__ __forceinline__ cp_pack<T, N> cp_fetch(const T *p) {
    typedef typename cp_pack<T, N>::word word;
    cp_pack<T, N> v;
    const word *from = reinterpret_cast<const word *>(p);
    if constexpr (sizeof v == sizeof(word)) {
        *reinterpret_cast<word *>(v.at) = HOW::read(from);
    } else {
#pragma unroll
        for (int w = 0; w < int(sizeof v / sizeof(word)); w++)
            reinterpret_cast<word *>(v.at)[w] = HOW::read(from + w);
    }
    return v;
}
//% end
//% if cp_deliver
template <int N, class T>
static __device__ __forceinline__ void cp_deliver(T *p, const cp_pack<T, N> &v) {
    typedef typename cp_pack<T, N>::word word;
    const word *from = reinterpret_cast<const word *>(v.at);
    word *to = reinterpret_cast<word *>(p);
    if constexpr (sizeof v == sizeof(word)) {
//% if stream
        __stcs(to, *from);
//% else
        *to = *from;
//% end
    } else {
#pragma unroll
        for (int w = 0; w < int(sizeof v / sizeof(word)); w++)
//% if stream
            __stcs(to + w, from[w]);
//% else
            to[w] = from[w];
//% end
    }
}
//% end
//% if cp_fetch_some
// The first `count` of N neighbours, from anywhere: in one access where they lie as one does.
template <int N, class HOW, class T, class COUNT>
static __device__ __forceinline__ cp_pack<T, N> cp_fetch_some(const T *p, COUNT count) {
    typedef typename cp_pack<T, N>::word word;
    cp_pack<T, N> v;
    static_assert(sizeof v == sizeof(word), "one access");
    if (count >= N && reinterpret_cast<size_t>(p) % sizeof(word) == 0) {
        *reinterpret_cast<word *>(v.at) = HOW::read(reinterpret_cast<const word *>(p));
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            if (i < count)
                v.at[i] = p[i];
    }
    return v;
}
//% end
//% if cp_deliver_some
template <int N, class T, class COUNT>
static __device__ __forceinline__ void cp_deliver_some(T *p, const cp_pack<T, N> &v, COUNT count) {
    typedef typename cp_pack<T, N>::word word;
    if (count >= N && reinterpret_cast<size_t>(p) % sizeof(word) == 0) {
//% if stream
        __stcs(reinterpret_cast<word *>(p), *reinterpret_cast<const word *>(v.at));
//% else
        *reinterpret_cast<word *>(p) = *reinterpret_cast<const word *>(v.at);
//% end
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            if (i < count)
                p[i] = v.at[i];
    }
}
//% end
//% if cp_tile
// A tile as (element of a vector, thread, vector of a thread): a thread's vectors of neighbours lie a
// block apart, so that a warp's accesses stay contiguous. This is what of a tile a thread has.
template <class T, int N, int BLOCK, int ITEMS, class P>
static __device__ __forceinline__ auto cp_tile(const P *tile) {
    using namespace cute;
    using Tile = Layout<Shape<Int<N>, Int<BLOCK>, Int<ITEMS>>>;
    return make_tensor(make_gmem_ptr((const T *)tile), Tile{})(_, threadIdx.x, _);
}
template <class T, int N, int BLOCK, int ITEMS, class P>
static __device__ __forceinline__ auto cp_tile(P *tile) {
    using namespace cute;
    using Tile = Layout<Shape<Int<N>, Int<BLOCK>, Int<ITEMS>>>;
    return make_tensor(make_gmem_ptr((T *)tile), Tile{})(_, threadIdx.x, _);
}
//% end
//% if cp_row
// A vector along a row.
template <class T, int N, class P> static __device__ __forceinline__ auto cp_row(const P *p) {
    using namespace cute;
    auto v = make_tensor<T>(Shape<Int<N>>{});
    copy(cp_vectors<T, N>{}, make_tensor(make_gmem_ptr((const T *)p), v.layout()), v);
    return v;
}
//% end
