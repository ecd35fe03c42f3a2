//% library
// A tile in shared memory: ROWS rows of ROW elements, PITCH apart, seen as (row, place in it), or as
// (place, row).
template <int ROWS, int ROW, int PITCH>
using gemm_rows = cute::Layout<cute::Shape<cute::Int<ROWS>, cute::Int<ROW>>,
                               cute::Stride<cute::Int<PITCH>, cute::_1>>;
template <int ROWS, int ROW, int PITCH>
using gemm_columns = cute::Layout<cute::Shape<cute::Int<ROW>, cute::Int<ROWS>>,
                                  cute::Stride<cute::_1, cute::Int<PITCH>>>;
// The tile as a tensor, with its bytes swizzled.
template <class Swizzle, class Layout, class T>
static __device__ __forceinline__ auto gemm_tile(T *at) {
    return cute::make_tensor(cute::make_swizzle_ptr(cute::make_smem_ptr(at), Swizzle{}), Layout{});
}
