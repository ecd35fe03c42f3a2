template <class A, class B> static __device__ __forceinline__ auto cp_bit_or(A a, B b) {
    return a | b;
}
