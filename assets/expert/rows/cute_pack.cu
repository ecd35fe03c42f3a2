// Registers for ITEMS packs of N neighbours: (neighbour, pack).
template <class T, int N, int ITEMS> static __device__ __forceinline__ auto cp_packs() {
    return cute::make_tensor<T>(cute::Shape<cute::Int<N>, cute::Int<ITEMS>>{});
}
// What a pointer to a pack's first element points to, as a tensor like the pack.
template <class P, class T> static __device__ __forceinline__ auto cp_beside(const T *p, const P &pack) {
    return cute::make_tensor(cute::make_gmem_ptr((const typename P::value_type *)p), pack.layout());
}
template <class P, class T> static __device__ __forceinline__ auto cp_beside(T *p, const P &pack) {
    return cute::make_tensor(cute::make_gmem_ptr((typename P::value_type *)p), pack.layout());
}
// As many bytes at once as the pack has, 16 at the most: packs lie at multiples of that.
template <class P> static __device__ __forceinline__ auto cp_vectors(const P &) {
    constexpr int BITS = 8 * sizeof(typename P::value_type) * cute::size(typename P::layout_type{});
    return cute::AutoVectorizingCopyWithAssumedAlignment<(BITS < 128 ? BITS : 128)>{};
}
template <class T, class P> static __device__ __forceinline__ void cp_get(const T *p, P &&pack) {
    cute::copy(cp_vectors(pack), cp_beside(p, pack), pack);
}
template <class T, class P> static __device__ __forceinline__ void cp_put(T *p, const P &pack) {
    cute::copy(cp_vectors(pack), pack, cp_beside(p, pack));
}

