// Remainder of the division rounded down: it has the sign of b.
template <class A, class B> static __device__ __forceinline__ auto cp_floormod(A a, B b) {
    auto r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
