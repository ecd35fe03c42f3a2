// CuTe, Ampere's way: cp.async into swizzled shared memory, ldmatrix, mma.sync; C[M,N] = A[M,K]
// B[N,K]^T of halves, 64 by 64 by 32 a step, four warps. Compiled by `compile`.
#include <cute/tensor.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/atom/mma_atom.hpp>
using namespace cute;

template <class Element, class Atom>
__device__ void gemm(const Element *pa, const Element *pb, float *pc, int m, int n, int k) {
    Tensor ga = local_tile(make_tensor(make_gmem_ptr(pa), make_shape(m, k), make_stride(k, _1{})),
                           Shape<_64, _32>{}, make_coord(blockIdx.y, _));
    Tensor gb = local_tile(make_tensor(make_gmem_ptr(pb), make_shape(n, k), make_stride(k, _1{})),
                           Shape<_64, _32>{}, make_coord(blockIdx.x, _));
    Tensor gc = local_tile(make_tensor(make_gmem_ptr(pc), make_shape(m, n), make_stride(n, _1{})),
                           Shape<_64, _64>{}, make_coord(blockIdx.y, blockIdx.x));
    auto atom = composition(Swizzle<2, 3, 3>{}, Layout<Shape<_8, _32>, Stride<_32, _1>>{});
    auto layout = tile_to_shape(atom, Shape<_64, _32, _2>{});
    __shared__ __align__(128) Element memory_a[64 * 32 * 2], memory_b[64 * 32 * 2];
    Tensor sa = make_tensor(make_smem_ptr(memory_a), layout);
    Tensor sb = make_tensor(make_smem_ptr(memory_b), layout);

    auto copy_in = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, Element>{},
                                   Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
    auto in = copy_in.get_slice(threadIdx.x);
    Tensor from_a = in.partition_S(ga);
    Tensor to_a = in.partition_D(sa);
    Tensor from_b = in.partition_S(gb);
    Tensor to_b = in.partition_D(sb);

    auto mma = make_tiled_mma(Atom{}, Layout<Shape<_2, _2>>{}, Tile<_32, _32, _16>{});
    auto thread = mma.get_slice(threadIdx.x);
    Tensor ra = thread.partition_fragment_A(sa(_, _, 0));
    Tensor rb = thread.partition_fragment_B(sb(_, _, 0));
    Tensor rc = thread.partition_fragment_C(gc);
    clear(rc);
    auto load_a = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, Element>{}, mma);
    auto load_b = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, Element>{}, mma);
    auto la = load_a.get_slice(threadIdx.x);
    auto lb = load_b.get_slice(threadIdx.x);
    Tensor shared_a = la.partition_S(sa);
    Tensor view_a = la.retile_D(ra);
    Tensor shared_b = lb.partition_S(sb);
    Tensor view_b = lb.retile_D(rb);

    int steps = k / 32;
    copy(copy_in, from_a(_, _, _, 0), to_a(_, _, _, 0));
    copy(copy_in, from_b(_, _, _, 0), to_b(_, _, _, 0));
    cp_async_fence();
    CUTE_NO_UNROLL
    for (int s = 0; s < steps; s++) {
        if (s + 1 < steps) {
            copy(copy_in, from_a(_, _, _, s + 1), to_a(_, _, _, (s + 1) % 2));
            copy(copy_in, from_b(_, _, _, s + 1), to_b(_, _, _, (s + 1) % 2));
        }
        cp_async_fence();
        cp_async_wait<1>();
        __syncthreads();
        CUTE_UNROLL
        for (int kk = 0; kk < size<2>(ra); kk++) {
            copy(load_a, shared_a(_, _, kk, s % 2), view_a(_, _, kk));
            copy(load_b, shared_b(_, _, kk, s % 2), view_b(_, _, kk));
            cute::gemm(mma, ra(_, _, kk), rb(_, _, kk), rc);
        }
        __syncthreads();
    }
    copy(rc, thread.partition_C(gc));
}
extern "C" __global__ void __launch_bounds__(128)
    cute_f16(const half_t *a, const half_t *b, float *c, int m, int n, int k) {
    gemm<half_t, SM80_16x8x16_F32F16F16F32_TN>(a, b, c, m, n, k);
}
extern "C" __global__ void __launch_bounds__(128)
    cute_bf16(const bfloat16_t *a, const bfloat16_t *b, float *c, int m, int n, int k) {
    gemm<bfloat16_t, SM80_16x8x16_F32BF16BF16F32_TN>(a, b, c, m, n, k);
}
