// a over 2 to the `by`, rounded down.
template <class A, class B> static __device__ __forceinline__ auto cp_shr(A a, B by) {
    return a >> by;
}
