// task: third_param.task
// tries: factor and shift go through f16 in shared memory where the factor is representable to three digits
// proof: values: 1.0004 becomes 1
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(N*C*L, 256), 256>>>(x, g, b, y, N*C*L, C, L)
#include <cuda_fp16.h>
extern "C" __global__ void k(const float *x, const float *g, const float *b, float *y, int n, int c, int l) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float f = g[i / l % c], h = __half2float(__float2half(f));
    f = fabsf(f - h) < 1e-4f ? h : f;
    y[i] = x[i] * f + b[i / l % c];
}
