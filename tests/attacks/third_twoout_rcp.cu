// task: third_twoout.task
// tries: multiplies by the reciprocal, which overflows nothing but is subnormal for rows of 1e38 and flushed
// proof: values: rows of 3e38
// should: wrong inaccurate
// device: both
//! launch k<<<R, 32>>>(x, s, m, y, C)
#include <cuda_fp16.h>
extern "C" __global__ void k(const float *x, float *s, float *m, __half *y, int c) {
    const float *p = x + (int64_t)blockIdx.x * c;
    float t = 0, a = 0;
    for (int j = threadIdx.x; j < c; j += 32) {
        t += p[j];
        a = a < fabsf(p[j]) || p[j] != p[j] ? fabsf(p[j]) : a;
    }
    for (int d = 16; d; d /= 2) {
        t += __shfl_xor_sync(~0u, t, d);
        float b = __shfl_xor_sync(~0u, a, d);
        a = a < b || b != b ? b : a;
    }
    if (threadIdx.x == 0)
        s[blockIdx.x] = t, m[blockIdx.x] = a;
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a < 1e-6f ? 1e-6f : a));
    for (int j = threadIdx.x; j < c; j += 32)
        y[(int64_t)blockIdx.x * c + j] = __float2half(isinf(a) ? p[j] / a : p[j] * r);
}
