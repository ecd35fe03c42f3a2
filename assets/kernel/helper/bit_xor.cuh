template <class A, class B> static __device__ __forceinline__ auto cp_bit_xor(A a, B b) {
    return a ^ b;
}
