// Division of integers, rounded down.
template <class A, class B> static __device__ __forceinline__ auto cp_floordiv(A a, B b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
