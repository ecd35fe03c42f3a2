// task: third_i4.task
// tries: sums of 64 products in f16
// proof: values beyond 2,048
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<[N, M], 32>>>(x, w, z, s, y, K, N)
#include <cuda_fp16.h>
extern "C" __global__ void k(const __half *x, const unsigned char *w, const int *z, const __half *s, float *y, int kk, int nn) {
    int n = blockIdx.x, m = blockIdx.y;
    __half a = __float2half(0);
    for (int k = threadIdx.x; k < 2 * kk; k += 32)
        a = __hfma(x[(int64_t)m * 2 * kk + k], __int2half_rn((w[(int64_t)n * kk + k / 2] >> 4 * (k % 2) & 15) - z[n]), a);
    float f = __half2float(a);
    for (int d = 16; d; d /= 2)
        f += __shfl_xor_sync(~0u, f, d);
    if (threadIdx.x == 0)
        y[(int64_t)m * nn + n] = f * __half2float(s[n]);
}
