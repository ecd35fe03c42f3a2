// N neighbours in shared memory.
template <int N, class T> static __device__ __forceinline__ cp_pack<T, N> &cp_kept(T *p) {
    return *reinterpret_cast<cp_pack<T, N> *>(p);
}

