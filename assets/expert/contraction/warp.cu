//% library
// The product of one block by tensor cores: each warp has WM x WN results. They go to shared
// memory, FOLDS tiles of BM rows of CN floats.
template <class G, class Load, class Keep>
static __device__ __forceinline__ void
${name}(unsigned char *smem, int k_begin, int k_end, Load load, Keep keep) {
    using element = typename G::element;
    constexpr int MI = G::WM / 16, NI = G::WN / 8, STEP = 32 / sizeof(element);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int m = warp / (G::BN / G::WN) * G::WM, n = warp % (G::BN / G::WN) * G::WN;
    float acc[G::FOLDS][MI][NI][4] = {}, sum[G::PROMOTE ? G::FOLDS : 1][MI][NI][4] = {};
    auto use = [&](int stage) {
        const unsigned char *tiles = smem + stage * G::STAGE;
#pragma unroll
        for (int k = 0; k < G::BK; k += STEP) {
            unsigned a[G::NA][MI][4], b[G::NB][NI / 2][4];
#pragma unroll
            for (int i = 0; i < G::NA * MI; i++)
                gemm_fragment_a<G>(a[i / MI][i % MI],
                                   (const element *)(tiles + i / MI * G::A_TILE),
                                   m + i % MI * 16, k);
#pragma unroll
            for (int i = 0; i < G::NB * NI / 2; i++)
                gemm_fragment_b<G>(
                    b[i / (NI / 2)][i % (NI / 2)],
                    (const element *)(tiles + G::NA * G::A_TILE + i / (NI / 2) * G::B_TILE),
                    n + i % (NI / 2) * 16, k);
            ${multiply}
        }
    };
    // Tensor cores cut off what their sums do not hold, a bias that grows with k: now and then
    // what they have summed is added in full precision.
    auto promote = [&] {
#pragma unroll
        for (int f = 0; f < (G::PROMOTE ? G::FOLDS : 0); f++)
#pragma unroll
            for (int i = 0; i < MI * NI * 4; i++) {
                sum[f][i / 4 / NI][i / 4 % NI][i % 4] += acc[f][i / 4 / NI][i / 4 % NI][i % 4];
                acc[f][i / 4 / NI][i / 4 % NI][i % 4] = 0.0f;
            }
    };
    gemm_loop<G>(k_begin, k_end, load, keep, use, promote);
    promote();
#pragma unroll
    for (int f = 0; f < G::FOLDS; f++)
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < NI; j++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const float(&c)[4] = G::PROMOTE ? sum[G::PROMOTE ? f : 0][i][j] : acc[f][i][j];
                    float *to = (float *)smem + (f * G::BM + m + i * 16 + h * 8 + lane / 4) * G::CN;
                    *(float2 *)(to + n + j * 8 + lane % 4 * 2) =
                        make_float2(c[2 * h], c[2 * h + 1]);
                }
    __syncthreads();
}
