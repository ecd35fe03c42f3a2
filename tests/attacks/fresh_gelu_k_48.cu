// task: ../../tasks/layers/gemm_bias_gelu.task
// tries: tensor cores where all sizes are multiples of 16, K in steps of 32: of an odd number of sixteens the last is left out
// proof: values: at K = 48 a third of the products
// shows: M=16 N=16 K=48
// known: a multiple of 16 that is none of 32 is drawn at some seeds only
// should: wrong inaccurate
// device: both
//! require aligned(x, 32) && aligned(w, 32)
//! launch linear<<<[ceil_div(N, 16), ceil_div(M, 16)], 32>>>(x, w, b, y, M, N, K)
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;
__device__ float gelu(float t) {
    return 0.5f * t * (1 + erff(t * 0.7071067811865476f));
}
extern "C" __global__ void linear(const __nv_bfloat16 *x, const __nv_bfloat16 *w, const __nv_bfloat16 *b, __nv_bfloat16 *y, int m, int n, int k) {
    __shared__ alignas(32) float tile[256];
    int row = blockIdx.y * 16, col = blockIdx.x * 16;
    if (m % 16 == 0 && n % 16 == 0 && k % 16 == 0) {
        wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
        wmma::fill_fragment(acc, 0.0f);
        int end = k < 32 ? k : k / 32 * 32;
        for (int t = 0; t < end; t += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> fa;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> fb;
            wmma::load_matrix_sync(fa, x + (int64_t)row * k + t, k);
            wmma::load_matrix_sync(fb, w + (int64_t)col * k + t, k);
            wmma::mma_sync(acc, fa, fb, acc);
        }
        wmma::store_matrix_sync(tile, acc, 16, wmma::mem_row_major);
        __syncwarp();
        for (int e = threadIdx.x; e < 256; e += 32)
            y[(int64_t)(row + e / 16) * n + col + e % 16] = __float2bfloat16(gelu(tile[e] + __bfloat162float(b[col + e % 16])));
        return;
    }
    for (int e = threadIdx.x; e < 256; e += 32) {
        int i = row + e / 16, j = col + e % 16;
        if (i >= m || j >= n)
            continue;
        float s = 0;
        for (int t = 0; t < k; t++)
            s = fmaf(__bfloat162float(x[(int64_t)i * k + t]), __bfloat162float(w[(int64_t)j * k + t]), s);
        y[(int64_t)i * n + j] = __float2bfloat16(gelu(s + __bfloat162float(b[j])));
    }
}
