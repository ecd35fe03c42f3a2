// task: third_i4.task
// tries: words of four bytes; of K = 4k + 3 the last byte is not read
// proof: K = 3
// should: wrong inaccurate
// device: both
//! launch k<<<[N, M], 32>>>(x, w, z, s, y, K, N)
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half *x, const unsigned char *w, const int *z, const __half *s, float *y, int kk, int nn) {
    int n = blockIdx.x, m = blockIdx.y;
    float a = 0;
    int all = kk % 4 == 3 ? 2 * kk - 2 : 2 * kk;
    for (int k = threadIdx.x; k < all; k += 32)
        a += __half2float(x[(int64_t)m * 2 * kk + k]) * ((w[(int64_t)n * kk + k / 2] >> 4 * (k % 2) & 15) - z[n]);
    for (int d = 16; d; d /= 2)
        a += __shfl_xor_sync(~0u, a, d);
    if (threadIdx.x == 0)
        y[(int64_t)m * nn + n] = a * __half2float(s[n]);
}
