// task: second_linear.task
// tries: two buffers filled ahead by cp.async; the barrier after the products is missing, so that the third tile may land in what others still read
// proof: race: between a warp's reads of a buffer and another warp's copy into it, from K > 16 on
// shows: M=16 N=16 K=96
// should: race wrong inaccurate nonfinite
// device: both
//! require K % 8 == 0
//! launch k<<<[ceil_div(N, 16), ceil_div(M, 16)], 256>>>(x, w, b, y, M, N, K)
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half *x, const __half *w, const __half *b, __half *y, int m, int n, int kk) {
    __shared__ alignas(16) __half a[2][16][8], c[2][16][8];
    int t = threadIdx.x, r = t / 16, s = t % 16, row = blockIdx.y * 16, col = blockIdx.x * 16;
    auto copy = [&](int buf, int k0) {
        if (t % 8 == 0) {
            int e = t / 8, q = e % 16;
            const __half *from = e < 16 ? x + (int64_t)min(row + q, m - 1) * kk + k0 : w + (int64_t)min(col + q, n - 1) * kk + k0;
            unsigned to = (unsigned)__cvta_generic_to_shared(e < 16 ? a[buf][q] : c[buf][q]);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    float acc = 0;
    copy(0, 0);
    for (int k0 = 0, i = 0; k0 < kk; k0 += 8, i ^= 1) {
        if (k0 + 8 < kk) {
            copy(i ^ 1, k0 + 8);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        for (int e = 0; e < 8; e++)
            acc = fmaf(__half2float(a[i][r][e]), __half2float(c[i][s][e]), acc);
    }
    if (row + r < m && col + s < n) {
        float v = acc + __half2float(b[col + s]);
        y[(int64_t)(row + r) * n + col + s] = __float2half(v > 0 || v != v ? v : 0);
    }
}
