//% library
//% if cp_ordered
// A number whose order among unsigned integers is that of floats, NaN above all; 0 is of none.
static __device__ __forceinline__ unsigned int cp_ordered(float v) {
    const unsigned int bits = __float_as_uint(v);
    if (v != v)
        return 0xffffffffu;
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
//% end
//% if cp_of_ordered
static __device__ __forceinline__ float cp_of_ordered(unsigned int order, float none) {
    if (order == 0 || order == 0xffffffffu)
        return order == 0 ? none : __uint_as_float(0x7fc00000u);
    return __uint_as_float(order & 0x80000000u ? order & 0x7fffffffu : ~order);
}
//% end
