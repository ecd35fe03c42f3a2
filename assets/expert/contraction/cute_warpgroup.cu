//% library
// The product of one block by wgmma, as the TiledMMA of G has it. The last warpgroup's first thread
// keeps STAGES tiles of k on their way; the others multiply, and hand their fragments to the sink.
template <class G, class Load, class Sink>
static __device__ __forceinline__ void ${name}(unsigned char *smem, int k_begin, int k_end,
                                               Load load, Sink sink) {
    using namespace cute;
    using operand = typename G::operand;
    __shared__ uint64_t full[G::STAGES], empty[G::STAGES];
    const int warpgroup = threadIdx.x / 128, tiles = (k_end - k_begin + G::BK - 1) / G::BK;
    if (threadIdx.x == 0) {
        for (int s = 0; s < G::STAGES; s++) {
            initialize_barrier(full[s], 1);
            initialize_barrier(empty[s], G::WARPGROUPS);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (warpgroup == G::WARPGROUPS) {
        //% if two
        cutlass::arch::warpgroup_reg_dealloc<40>();
        //% end
        for (int t = 0; threadIdx.x % 128 == 0 && t < tiles; t++) {
            const int s = t % G::STAGES;
            wait_barrier(empty[s], t / G::STAGES % 2 ^ 1);
            set_barrier_transaction_bytes(full[s], G::STAGE);
            load(smem + s * G::STAGE, k_begin + t * G::BK, &full[s]);
        }
        return;
    }
    //% if two
    cutlass::arch::warpgroup_reg_alloc<232>();
    //% end
    typename G::Mma mma;
    const auto part = mma.get_slice(threadIdx.x);
    // The tile of an operand, or of one of the parts it is split into.
    auto tile_a = [&](int stage, int i, int of) {
        return make_tensor(make_smem_ptr((operand *)(smem + stage * G::STAGE + i * G::A_TILE) +
                                         of * G::BM * G::BK),
                           typename G::LayoutA{});
    };
    auto tile_b = [&](int stage, int i, int of) {
        return make_tensor(make_smem_ptr((operand *)(smem + stage * G::STAGE + G::NA * G::A_TILE +
                                                     i * G::B_TILE) +
                                         of * G::BN * G::BK),
                           typename G::LayoutB{});
    };
    decltype(partition_fragment_C(mma, Shape<Int<G::BM>, Int<G::BN>>{})) acc[G::FOLDS],
        sum[G::PROMOTE ? G::FOLDS : 1];
#pragma unroll
    for (int f = 0; f < G::FOLDS; f++) {
        clear(acc[f]); // where k is empty
        clear(sum[G::PROMOTE ? f : 0]);
    }
    for (int t = 0; t < tiles;) {
        const int chain = G::PROMOTE ? min(t + G::PROMOTE, tiles) : tiles;
        for (int begin = t; t < chain; t++) {
            const int s = t % G::STAGES;
            wait_barrier(full[s], t / G::STAGES % 2);
            warpgroup_arrive();
#pragma unroll
            for (int i = 0; i < G::FOLDS * G::PRODUCTS; i++) {
                // Parts of a split operand: of their products those that count, the smallest first.
                const int f = i / G::PRODUCTS, p = 6 - G::PRODUCTS + i % G::PRODUCTS;
                const int pa = p == 0 ? 2 : p == 2 || p == 3, pb = p == 1 ? 2 : p == 2 || p == 4;
                auto a = part.partition_fragment_A(tile_a(s, G::NA > 1 ? f : 0, pa));
                auto b = part.partition_fragment_B(tile_b(s, G::NB > 1 ? f : 0, pb));
#pragma unroll
                for (int k = 0; k < size<2>(a); k++) {
                    mma.accumulate_ = t > begin || p > 6 - G::PRODUCTS || k > 0
                                          ? GMMA::ScaleOut::One
                                          : GMMA::ScaleOut::Zero;
                    gemm(mma, a(_, _, k), b(_, _, k), acc[f]);
                }
            }
            warpgroup_commit_batch();
            // With at most this group under way, the tile before is free.
            warpgroup_wait<1>();
            if (t > begin && threadIdx.x % 128 == 0)
                arrive_barrier(empty[(t - 1) % G::STAGES]);
        }
        warpgroup_wait<0>();
        if (threadIdx.x % 128 == 0)
            arrive_barrier(empty[(t - 1) % G::STAGES]);
        // Tensor cores cut off what their sums do not hold: now and then what they have summed is
        // added in full precision.
#pragma unroll
        for (int f = 0; f < G::FOLDS; f++) {
            warpgroup_fence_operand(acc[f]);
#pragma unroll
            for (int i = 0; i < (G::PROMOTE ? size(acc[f]) : 0); i++)
                sum[G::PROMOTE ? f : 0](i) += acc[f](i);
        }
    }
    sink.begin();
#pragma unroll
    for (int f = 0; f < G::FOLDS; f++)
        sink.fragment(f, part, G::PROMOTE ? sum[G::PROMOTE ? f : 0] : acc[f]);
    sink.end();
}
