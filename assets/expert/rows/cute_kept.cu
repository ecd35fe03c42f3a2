// A pack that shared memory keeps.
template <class T, class P> static __device__ __forceinline__ auto cp_kept(T *p, const P &pack) {
    return cute::make_tensor(cute::make_smem_ptr((typename P::value_type *)p), pack.layout());
}

