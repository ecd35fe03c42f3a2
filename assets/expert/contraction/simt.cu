//% library
// The product of one block by fused multiply-adds: each thread has TM x TN results, in pieces of
// four that lie a part of the tile apart, so that a warp reads shared memory without conflicts. The
// sink gets them one by one.
template <class G, class Load, class Keep, class Sink>
static __device__ __forceinline__ void gemm_simt(unsigned char *smem, int k_begin, int k_end,
                                                 Load load, Keep keep, Sink sink) {
    constexpr int TM = G::TM, TN = G::TN, ACROSS = G::BN / TN;
    const int x = threadIdx.x % ACROSS, y = threadIdx.x / ACROSS;
    float acc[G::FOLDS][TM][TN] = {}, sum[G::PROMOTE ? G::FOLDS : 1][TM][TN] = {};
    auto use = [&](int stage) {
        const unsigned char *tiles = smem + stage * G::STAGE;
#pragma unroll
        for (int k = 0; k < G::BK; k++) {
            float a[G::NA][TM], b[G::NB][TN];
#pragma unroll
            for (int i = 0; i < G::NA * TM; i += 4)
                *(float4 *)&a[i / TM][i % TM] = *(const float4 *)(
                    (const float *)(tiles + i / TM * G::A_TILE) +
                    G::a_at(k, i % TM / 4 * (G::BM * 4 / TM) + 4 * y));
#pragma unroll
            for (int i = 0; i < G::NB * TN; i += 4)
                *(float4 *)&b[i / TN][i % TN] = *(const float4 *)(
                    (const float *)(tiles + G::NA * G::A_TILE + i / TN * G::B_TILE) +
                    G::b_at(k, i % TN / 4 * (G::BN * 4 / TN) + 4 * x));
#pragma unroll
            for (int f = 0; f < G::FOLDS; f++)
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++)
                        acc[f][i][j] = fmaf(a[G::NA > 1 ? f : 0][i], b[G::NB > 1 ? f : 0][j],
                                            acc[f][i][j]);
        }
    };
    // A long sum is made of short ones.
    auto promote = [&] {
#pragma unroll
        for (int f = 0; f < (G::PROMOTE ? G::FOLDS : 0); f++)
#pragma unroll
            for (int i = 0; i < TM * TN; i++) {
                sum[f][i / TN][i % TN] += acc[f][i / TN][i % TN];
                acc[f][i / TN][i % TN] = 0.0f;
            }
    };
    gemm_loop<G>(k_begin, k_end, load, keep, use, promote);
    sink.begin();
#pragma unroll
    for (int f = 0; f < G::FOLDS; f++)
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++)
                sink.one(f, i / 4 * (G::BM * 4 / TM) + 4 * y + i % 4,
                         j / 4 * (G::BN * 4 / TN) + 4 * x + j % 4,
                         acc[f][i][j] + (G::PROMOTE ? sum[G::PROMOTE ? f : 0][i][j] : 0.0f));
    sink.end();
}
