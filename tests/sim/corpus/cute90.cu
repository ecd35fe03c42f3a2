// CuTe, Hopper's way: tensor copies into 128-byte swizzled shared memory, mbarriers, wgmma;
// C[M,N] = A[M,K] B[N,K]^T of halves, 64 by 64 by 64 a step, two stages, a warpgroup that loads for
// itself. Compiled by `compile`.
#include <cute/tensor.hpp>
#include <cute/arch/cluster_sm90.hpp>
#include <cute/arch/copy_sm90.hpp>
#include <cute/arch/copy_sm90_tma.hpp>
#include <cute/atom/mma_atom.hpp>
using namespace cute;

template <class Element, class Atom>
__device__ void gemm(const CUtensorMap *ma, const CUtensorMap *mb, float *pc, int m, int n, int k) {
    constexpr int STAGES = 2, BYTES = 2 * 64 * 64 * sizeof(Element);
    __shared__ __align__(1024) Element memory_a[64 * 64 * STAGES], memory_b[64 * 64 * STAGES];
    __shared__ uint64_t full[STAGES];
    auto layout = tile_to_shape(GMMA::Layout_K_SW128_Atom<Element>{}, Shape<_64, _64, Int<STAGES>>{});
    Tensor sa = make_tensor(make_smem_ptr(memory_a), layout);
    Tensor sb = make_tensor(make_smem_ptr(memory_b), layout);
    Tensor gc = local_tile(make_tensor(make_gmem_ptr(pc), make_shape(m, n), make_stride(n, _1{})),
                           Shape<_64, _64>{}, make_coord(blockIdx.y, blockIdx.x));
    auto mma = make_tiled_mma(Atom{});
    auto thread = mma.get_slice(threadIdx.x);
    Tensor da = thread.make_fragment_A(thread.partition_A(sa));
    Tensor db = thread.make_fragment_B(thread.partition_B(sb));
    Tensor rc = thread.partition_fragment_C(gc);
    clear(rc);

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++)
            initialize_barrier(full[s], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    auto load = [&](int step) {
        int s = step % STAGES;
        set_barrier_transaction_bytes(full[s], BYTES);
        SM90_TMA_LOAD_2D::copy(ma, &full[s], 0x1000000000000000ull, memory_a + s * 4096, step * 64,
                               (int)blockIdx.y * 64);
        SM90_TMA_LOAD_2D::copy(mb, &full[s], 0x1000000000000000ull, memory_b + s * 4096, step * 64,
                               (int)blockIdx.x * 64);
    };
    int steps = k / 64;
    if (threadIdx.x == 0)
        for (int s = 0; s < STAGES && s < steps; s++)
            load(s);
    CUTE_NO_UNROLL
    for (int step = 0; step < steps; step++) {
        int s = step % STAGES;
        wait_barrier(full[s], step / STAGES & 1);
        warpgroup_fence_operand(rc);
        warpgroup_arrive();
        cute::gemm(mma, da(_, _, _, s), db(_, _, _, s), rc);
        warpgroup_commit_batch();
        warpgroup_wait<0>();
        warpgroup_fence_operand(rc);
        __syncthreads();
        if (threadIdx.x == 0 && step + STAGES < steps)
            load(step + STAGES);
    }
    copy(rc, thread.partition_C(gc));
}
extern "C" __global__ void __launch_bounds__(128)
    cute_wgmma_f16(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                   const half_t *, const half_t *, float *c, int m, int n, int k) {
    gemm<half_t, SM90_64x64x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>>(&a, &b, c, m, n, k);
}
extern "C" __global__ void __launch_bounds__(128)
    cute_wgmma_bf16(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                    const bfloat16_t *, const bfloat16_t *, float *c, int m, int n, int k) {
    gemm<bfloat16_t, SM90_64x64x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::K>>(&a, &b, c, m, n,
                                                                                   k);
}
