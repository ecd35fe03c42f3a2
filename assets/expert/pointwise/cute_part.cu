// A tile as (element of a vector, thread, vector of a thread): a thread's vectors of neighbours lie a
// block apart, so that a warp's accesses stay contiguous. This is what of a tile a thread has.
template <class T> static __device__ __forceinline__ auto ${part}(T *tile) {
    using namespace cute;
    using Tile = Layout<Shape<Int<${width}>, Int<${block}>, Int<${items}>>>;
    return make_tensor(make_gmem_ptr(tile), Tile{})(_, threadIdx.x, _);
}
// Registers for it.
template <class T> static __device__ __forceinline__ auto ${vectors}() {
    return cute::make_tensor<T>(cute::Shape<cute::Int<${width}>, cute::Int<${items}>>{});
}
