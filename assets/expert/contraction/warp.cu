//% library
// The product of one block by tensor cores: each warp has WM x WN results, and hands them to the
// sink.
template <class G, class Load, class Keep, class Sink>
static __device__ __forceinline__ void
${name}(unsigned char *smem, int k_begin, int k_end, Load load, Keep keep, Sink sink) {
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
            //% if splits
            // x = big + small, both TF32: of the four products the smallest is left out.
            unsigned a_small[G::NA][MI][4], b_small[G::NB][NI / 2][4];
#pragma unroll
            for (int i = 0; i < G::NA * MI * 4; i++) {
                unsigned &big = a[i / 4 / MI][i / 4 % MI][i % 4];
                const float x = __uint_as_float(big);
                big = gemm_tf32(x);
                a_small[i / 4 / MI][i / 4 % MI][i % 4] = gemm_tf32(x - __uint_as_float(big));
            }
#pragma unroll
            for (int i = 0; i < G::NB * NI * 2; i++) {
                unsigned &big = b[i / 2 / NI][i / 4 % (NI / 2)][i % 4];
                const float x = __uint_as_float(big);
                big = gemm_tf32(x);
                b_small[i / 2 / NI][i / 4 % (NI / 2)][i % 4] = gemm_tf32(x - __uint_as_float(big));
            }
#pragma unroll
            for (int f = 0; f < G::FOLDS; f++)
#pragma unroll
                for (int i = 0; i < 3 * MI * NI; i++) {
                    const int part = i / (MI * NI), r = i / NI % MI, c = i % NI;
                    const int fa = G::NA > 1 ? f : 0, fb = G::NB > 1 ? f : 0;
                    gemm_mma_${type}(acc[f][r][c], part == 0 ? a_small[fa][r] : a[fa][r],
                                     (part == 1 ? b_small[fb][c / 2] : b[fb][c / 2]) + c % 2 * 2);
                }
            //% else
            //% if rounds
#pragma unroll
            for (int i = 0; i < G::NA * MI * 4; i++)
                a[i / 4 / MI][i / 4 % MI][i % 4] =
                    gemm_tf32(__uint_as_float(a[i / 4 / MI][i / 4 % MI][i % 4]));
#pragma unroll
            for (int i = 0; i < G::NB * NI * 2; i++)
                b[i / 2 / NI][i / 4 % (NI / 2)][i % 4] =
                    gemm_tf32(__uint_as_float(b[i / 2 / NI][i / 4 % (NI / 2)][i % 4]));
            //% end
#pragma unroll
            for (int f = 0; f < G::FOLDS; f++)
#pragma unroll
                for (int i = 0; i < MI * NI; i++)
                    gemm_mma_${type}(acc[f][i / NI][i % NI], a[G::NA > 1 ? f : 0][i / NI],
                                     b[G::NB > 1 ? f : 0][i % NI / 2] + i % 2 * 2);
            //% end
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
    sink.begin();
    promote();
    sink.mma(m, n, lane, G::PROMOTE ? sum : acc);
    sink.end();
}
