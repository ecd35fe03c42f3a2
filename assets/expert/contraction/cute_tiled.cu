//% library
// The product of one block by the TiledMMA of G, whose threads hand their fragments to the sink.
template <class G, class Load, class Keep, class Sink>
static __device__ __forceinline__ void ${name}(unsigned char *smem, int k_begin, int k_end,
                                               Load load, Keep keep, Sink sink) {
    using namespace cute;
    using operand = typename G::operand;
    typename G::Mma mma;
    const auto part = mma.get_slice(threadIdx.x);
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
    // Step k of a tile to registers: by ldmatrix, or as it lies where there is no atom for it.
    auto fetch_a = [&](auto tile, auto &to, int k) {
        if constexpr (is_same_v<typename G::FetchA, void>) {
            copy(part.partition_A(tile)(_, _, k), to(_, _, k));
        } else {
            const auto fetch = make_tiled_copy_A(Copy_Atom<typename G::FetchA, operand>{}, mma);
            const auto mine = fetch.get_slice(threadIdx.x);
            copy(fetch, mine.partition_S(tile)(_, _, k), mine.retile_D(to)(_, _, k));
        }
    };
    auto fetch_b = [&](auto tile, auto &to, int k) {
        if constexpr (is_same_v<typename G::FetchB, void>) {
            copy(part.partition_B(tile)(_, _, k), to(_, _, k));
        } else {
            const auto fetch = make_tiled_copy_B(Copy_Atom<typename G::FetchB, operand>{}, mma);
            const auto mine = fetch.get_slice(threadIdx.x);
            copy(fetch, mine.partition_S(tile)(_, _, k), mine.retile_D(to)(_, _, k));
        }
    };
    auto use = [&](int stage) {
#pragma unroll
        for (int k = 0; k < size<2>(a[0]); k++) {
#pragma unroll
            for (int i = 0; i < G::NA; i++)
                fetch_a(tile_a(stage, i), a[i], k);
#pragma unroll
            for (int i = 0; i < G::NB; i++)
                fetch_b(tile_b(stage, i), b[i], k);
            //% if splits
            // x = big + small, both TF32: of the four products the smallest is left out.
            auto split = [&](auto &&x, auto &&small) {
                auto full = recast<float>(x);
#pragma unroll
                for (int i = 0; i < size(x); i++) {
                    const float value = full(i);
                    x(i) = tfloat32_t(value);
                    small(i) = tfloat32_t(value - float(x(i)));
                }
            };
            decltype(make_fragment_like(a[0](_, _, 0))) a_small[G::NA];
            decltype(make_fragment_like(b[0](_, _, 0))) b_small[G::NB];
#pragma unroll
            for (int i = 0; i < G::NA; i++)
                split(a[i](_, _, k), a_small[i]);
#pragma unroll
            for (int i = 0; i < G::NB; i++)
                split(b[i](_, _, k), b_small[i]);
            //% end
            //% if rounds
            // Tensor cores cut off what TF32 does not hold: round first.
            auto round = [&](auto &&x) {
                auto full = recast<float>(x);
#pragma unroll
                for (int i = 0; i < size(x); i++)
                    x(i) = tfloat32_t(full(i));
            };
#pragma unroll
            for (int i = 0; i < G::NA; i++)
                round(a[i](_, _, k));
#pragma unroll
            for (int i = 0; i < G::NB; i++)
                round(b[i](_, _, k));
            //% end
#pragma unroll
            for (int f = 0; f < G::FOLDS; f++) {
                const int fa = G::NA > 1 ? f : 0, fb = G::NB > 1 ? f : 0;
                //% if splits
                gemm(mma, a_small[fa], b[fb](_, _, k), acc[f]);
                gemm(mma, a[fa](_, _, k), b_small[fb], acc[f]);
                //% end
                gemm(mma, a[fa](_, _, k), b[fb](_, _, k), acc[f]);
            }
        }
    };
    // A long sum is made of short ones: rounding errors grow with the number of terms, and tensor
    // cores cut off what their sums do not hold.
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
    sink.begin();
    promote();
#pragma unroll
    for (int f = 0; f < G::FOLDS; f++)
        sink.fragment(f, part, G::PROMOTE ? sum[G::PROMOTE ? f : 0] : acc[f]);
    sink.end();
}
