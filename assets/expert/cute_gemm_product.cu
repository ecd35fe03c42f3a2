// The product of one block by the TiledMMA of G. Results go to shared memory, FOLDS tiles of BM rows
// of CN floats.
template <class G, class Load, class Keep>
static __device__ __forceinline__ void ${name}(unsigned char *smem, int k_begin, int k_end,
                                               Load load, Keep keep) {
    using namespace cute;
    using operand = typename G::operand;
    typename G::Mma mma;
    const auto part = mma.get_slice(threadIdx.x);
    const auto fetch_a = make_tiled_copy_A(typename G::FetchA{}, mma);
    const auto fetch_b = make_tiled_copy_B(typename G::FetchB{}, mma);
    const auto from_a = fetch_a.get_slice(threadIdx.x);
    const auto from_b = fetch_b.get_slice(threadIdx.x);
    auto tile_a = [&](int stage, int i) {
        return gemm_tile<typename G::SwizzleA, typename G::LayoutA>(
            (operand *)(smem + stage * G::STAGE + i * G::A_TILE));
    };
    auto tile_b = [&](int stage, int i) {
        return gemm_tile<typename G::SwizzleB, typename G::LayoutB>(
            (operand *)(smem + stage * G::STAGE + G::NA * G::A_TILE + i * G::B_TILE));
    };
    decltype(part.partition_fragment_A(tile_a(0, 0))) a[G::NA];
    decltype(part.partition_fragment_B(tile_b(0, 0))) b[G::NB];
    decltype(partition_fragment_C(mma, Shape<Int<G::BM>, Int<G::BN>>{})) acc[G::FOLDS],
        sum[G::PROMOTE ? G::FOLDS : 1];
#pragma unroll
    for (int f = 0; f < G::FOLDS; f++) {
        clear(acc[f]);
        clear(sum[G::PROMOTE ? f : 0]);
    }
    auto use = [&](int stage) {
#pragma unroll
        for (int k = 0; k < size<2>(a[0]); k++) {
#pragma unroll
            for (int i = 0; i < G::NA; i++)
                copy(fetch_a, from_a.partition_S(tile_a(stage, i))(_, _, k),
                     from_a.retile_D(a[i])(_, _, k));
#pragma unroll
            for (int i = 0; i < G::NB; i++)
                copy(fetch_b, from_b.partition_S(tile_b(stage, i))(_, _, k),
                     from_b.retile_D(b[i])(_, _, k));
            ${multiply}
        }
    };
    // A long sum is made of short ones: ${promotion}.
    auto promote = [&] {
#pragma unroll
        for (int f = 0; f < (G::PROMOTE ? G::FOLDS : 0); f++) {
#pragma unroll
            for (int i = 0; i < size(acc[f]); i++)
                sum[f](i) += acc[f](i);
            clear(acc[f]);
        }
    };
    gemm_loop<G>(k_begin, k_end, load, keep, use, promote);
    promote();
    auto results = make_tensor(make_smem_ptr((float *)smem),
                               Layout<Shape<Int<G::BM>, Int<G::BN>, Int<G::FOLDS>>,
                                      Stride<Int<G::CN>, _1, Int<G::BM * G::CN>>>{});
#pragma unroll
    for (int f = 0; f < G::FOLDS; f++)
        copy(G::PROMOTE ? sum[G::PROMOTE ? f : 0] : acc[f], part.partition_C(results(_, _, f)));
    __syncthreads();
}
