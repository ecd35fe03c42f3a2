//% library
// Starts the copies of a tile of rows by the first of THREADS threads that have one: pieces of 16
// bytes, neighbours along a row. `rows` and `cols` are what there is from the tile's first element
// on; beyond it are zeros.
template <int THREADS, class Rows, class Swizzle, class T, class I>
static __device__ __forceinline__ void gemm_copy_rows(T *to, const T *from, I pitch, I rows,
                                                      I cols) {
    using namespace cute;
    constexpr int PIECE = 16 / sizeof(T), R = size<0>(Rows{}), C = size<1>(Rows{}) / PIECE;
    constexpr int USED = R * C < THREADS ? R * C : THREADS;
    using Pieces = Layout<Shape<Int<R>, Int<C>>, Stride<Int<stride<0>(Rows{}) / PIECE>, _1>>;
    using Threads = Layout<Shape<Int<USED / C>, Int<C>>, Stride<Int<C>, _1>>;
    using Atom = Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>, uint128_t>;
    if (USED < THREADS && threadIdx.x >= USED)
        return;
    auto global = make_tensor(make_gmem_ptr((const uint128_t *)from),
                              make_layout(Shape<Int<R>, Int<C>>{}, make_stride(pitch / PIECE, _1{})));
    auto source = local_partition(global, Threads{}, threadIdx.x);
    auto target = local_partition(gemm_tile<Swizzle, Pieces>((uint128_t *)to), Threads{}, threadIdx.x);
    const bool inside = (I)threadIdx.x % C * PIECE < cols;
#pragma unroll
    for (int i = 0; i < size<0>(source); i++)
        copy(Atom{}.with(inside && (I)threadIdx.x / C + i * (USED / C) < rows), source(i, _),
             target(i, _));
}
