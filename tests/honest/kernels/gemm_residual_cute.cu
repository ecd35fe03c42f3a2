// task: tasks/layers/gemm_residual.task
// set: M=128 N=128 K=256
// needs: CUTLASS
// what: CuTe: tiles and fragments by layouts, the SM80 atom for bf16
#include <cute/tensor.hpp>
//! require M % 64 == 0 && N % 64 == 0 && K % 32 == 0
//! launch gemm<<<[N // 64, M // 64], 128>>>(x, w, r, y, M, N, K)
extern "C" __global__ void __launch_bounds__(128)
    gemm(const cutlass::bfloat16_t *x, const cutlass::bfloat16_t *w, const cutlass::bfloat16_t *r,
         cutlass::bfloat16_t *y, int m, int n, int k) {
    using namespace cute;
    auto rows = [&](auto *p, int count) {
        return make_tensor(make_gmem_ptr(p), make_layout(make_shape(count, k), GenRowMajor{}));
    };
    auto whole = make_layout(make_shape(m, n), GenRowMajor{});
    auto tile = make_shape(Int<64>{}, Int<64>{}, Int<32>{});
    auto at = make_coord(blockIdx.y, blockIdx.x, _);
    auto gx = local_tile(rows(x, m), tile, at, Step<_1, X, _1>{});
    auto gw = local_tile(rows(w, n), tile, at, Step<X, _1, _1>{});
    auto gr = local_tile(make_tensor(make_gmem_ptr(r), whole), tile, at, Step<_1, _1, X>{});
    auto gy = local_tile(make_tensor(make_gmem_ptr(y), whole), tile, at, Step<_1, _1, X>{});

    auto mma = make_tiled_mma(SM80_16x8x16_F32BF16BF16F32_TN{}, Layout<Shape<_2, _2, _1>>{});
    auto part = mma.get_thread_slice(threadIdx.x);
    auto tx = part.partition_A(gx);
    auto tw = part.partition_B(gw);
    auto tr = part.partition_C(gr);
    auto ty = part.partition_C(gy);
    auto fx = part.partition_fragment_A(gx(_, _, 0));
    auto fw = part.partition_fragment_B(gw(_, _, 0));
    auto sum = part.make_fragment_C(ty);
    clear(sum);
    for (int t = 0; t < size<2>(gx); t++) {
        copy(tx(_, _, _, t), fx);
        copy(tw(_, _, _, t), fw);
        cute::gemm(mma, fx, fw, sum);
    }
    for (int e = 0; e < size(sum); e++)
        ty(e) = cutlass::bfloat16_t(sum(e) + float(tr(e)));
}
