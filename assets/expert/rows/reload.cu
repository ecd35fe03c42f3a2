// N neighbours that others will read again: caches may keep them.
template <int N, class T> static __device__ __forceinline__ cp_pack<T, N> cp_reload(const T *p) {
    return *reinterpret_cast<const cp_pack<T, N> *>(p);
}

