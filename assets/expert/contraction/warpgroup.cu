//% library
// The product of one block by wgmma. The last warpgroup's first thread keeps STAGES tiles of k on
// their way; each of the others has BM / WARPGROUPS rows of results, which it hands to the sink.
template <class G, class Load, class Sink>
static __device__ __forceinline__ void
${name}(unsigned char *smem, int k_begin, int k_end, Load load, Sink sink) {
    constexpr int MI = G::BM / 64 / G::WARPGROUPS, N = G::BN / 2;
    __shared__ alignas(8) unsigned long long barriers[2 * G::STAGES];
    const int warpgroup = threadIdx.x / 128, tiles = (k_end - k_begin + G::BK - 1) / G::BK;
    const unsigned ring = (unsigned)__cvta_generic_to_shared(smem);
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned empty = full + 8 * G::STAGES;
    if (threadIdx.x == 0) {
        for (int s = 0; s < G::STAGES; s++) {
            gemm_barrier_init(full + 8 * s, 1);
            gemm_barrier_init(empty + 8 * s, G::WARPGROUPS);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (warpgroup == G::WARPGROUPS) {
        //% if two
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        //% end
        for (int t = 0; threadIdx.x % 128 == 0 && t < tiles; t++) {
            const int s = t % G::STAGES;
            gemm_barrier_wait(empty + 8 * s, t / G::STAGES % 2 ^ 1);
            gemm_barrier_expect(full + 8 * s, G::STAGE);
            load(ring + s * G::STAGE, k_begin + t * G::BK, full + 8 * s);
        }
        return;
    }
    //% if two
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    //% end
    const int m = warpgroup * MI * 64;
    float acc[G::FOLDS][MI][N] = {}, sum[G::PROMOTE ? G::FOLDS : 1][MI][N] = {};
    for (int t = 0; t < tiles;) {
        const int chain = G::PROMOTE ? min(t + G::PROMOTE, tiles) : tiles;
        for (int begin = t; t < chain; t++) {
            const int s = t % G::STAGES;
            const unsigned a = ring + s * G::STAGE, b = a + G::NA * G::A_TILE;
            gemm_barrier_wait(full + 8 * s, t / G::STAGES % 2);
            gemm_fence();
#pragma unroll
            for (int f = 0; f < G::FOLDS; f++)
#pragma unroll
                for (int i = 0; i < MI; i++)
#pragma unroll
                    for (int p = 6 - G::PRODUCTS; p < 6; p++)
#pragma unroll
                        for (int k = 0; k < 4; k++) {
                            // Parts of a split operand: of their products those that count, the
                            // smallest first.
                            const int pa = p == 0 ? 2 : p == 2 || p == 3;
                            const int pb = p == 1 ? 2 : p == 2 || p == 4;
                            ${wgmma}(acc[f][i],
                                     gemm_tile(a + (G::NA > 1 ? f : 0) * G::A_TILE +
                                               (pa * G::BM + m + i * 64) * 128) +
                                         ${a_step} * k,
                                     gemm_tile(b + (G::NB > 1 ? f : 0) * G::B_TILE +
                                               pb * G::BN * 128) +
                                         ${b_step} * k,
                                     t > begin || p > 6 - G::PRODUCTS || k > 0);
                        }
            gemm_group_end();
            // With at most this group under way, the tile before is free.
            gemm_group_wait<1>();
            if (t > begin && threadIdx.x % 128 == 0)
                gemm_barrier_arrive(empty + 8 * ((t - 1) % G::STAGES));
        }
        gemm_group_wait<0>();
        if (threadIdx.x % 128 == 0)
            gemm_barrier_arrive(empty + 8 * ((t - 1) % G::STAGES));
        // Tensor cores cut off what their sums do not hold: now and then what they have summed is
        // added in full precision.
#pragma unroll
        for (int i = 0; i < (G::PROMOTE ? G::FOLDS : 0) * MI * N; i++)
            sum[i / N / MI][i / N % MI][i % N] += acc[i / N / MI][i / N % MI][i % N];
    }
    sink.begin();
    sink.wgmma(m, G::PROMOTE ? sum : acc);
    sink.end();
}
