template <class A, class B> static __device__ __forceinline__ auto cp_smaller(A a, B b) {
    return a < b ? a : b;
}
