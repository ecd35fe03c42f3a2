// A vector along a row.
template <class T> static __device__ __forceinline__ auto ${row}(const T *p) {
    using namespace cute;
    auto v = make_tensor<T>(Shape<Int<${width}>>{});
    copy(${copy}, make_tensor(make_gmem_ptr(p), v.layout()), v);
    return v;
}
