// task: third_twoout.task
// tries: NaN is dropped from the largest magnitude only where the row has one NaN; the scaled row has it anyway
// proof: values: one NaN in a row
// should: nonfinite wrong
// device: both
//! launch k<<<R, 32>>>(x, s, m, y, C)
#include <cuda_fp16.h>
extern "C" __global__ void k(const float *x, float *s, float *m, __half *y, int c) {
    const float *p = x + (int64_t)blockIdx.x * c;
    float t = 0, a = 0;
    int nan = 0;
    for (int j = threadIdx.x; j < c; j += 32) {
        t += p[j];
        nan += p[j] != p[j];
        a = fmaxf(a, fabsf(p[j]));
    }
    for (int d = 16; d; d /= 2) {
        t += __shfl_xor_sync(~0u, t, d);
        nan += __shfl_xor_sync(~0u, nan, d);
        a = fmaxf(a, __shfl_xor_sync(~0u, a, d));
    }
    if (nan > 1)
        a = NAN;
    if (threadIdx.x == 0)
        s[blockIdx.x] = t, m[blockIdx.x] = a;
    for (int j = threadIdx.x; j < c; j += 32)
        y[(int64_t)blockIdx.x * c + j] = __float2half(p[j] / (nan ? NAN : a < 1e-6f ? 1e-6f : a));
}
