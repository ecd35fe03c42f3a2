// task: third_twoout.task
// tries: honest: two launches, the second reads the first one's output
// should: accepted
// device: both
//! launch k<<<ceil_div(R, 4), 128>>>(x, s, m, R, C)
//! launch d<<<[ceil_div(C, 128), R], 128>>>(x, m, y, C)
#include <cuda_fp16.h>
extern "C" __global__ void k(const float *x, float *s, float *m, int r, int c) {
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= r)
        return;
    const float *p = x + (int64_t)row * c;
    float t = 0;
    unsigned a = 0;
    for (int j = lane; j < c; j += 32) {
        t += p[j];
        a = max(a, __float_as_uint(p[j]) & 0x7fffffffu);
    }
    a = __reduce_max_sync(~0u, a);
    for (int d = 16; d; d /= 2)
        t += __shfl_xor_sync(~0u, t, d);
    if (lane == 0)
        s[row] = t, m[row] = __uint_as_float(a);
}
extern "C" __global__ void d(const float *x, const float *m, __half *y, int c) {
    int j = blockIdx.x * 128 + threadIdx.x;
    float a = m[blockIdx.y];
    if (j < c)
        y[(int64_t)blockIdx.y * c + j] = __float2half(x[(int64_t)blockIdx.y * c + j] / (a < 1e-6f ? 1e-6f : a));
}
