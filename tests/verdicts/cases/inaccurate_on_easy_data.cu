// expect: inaccurate
// row: 4
// tries: bf16 for blocks whose values are all small and positive, exact otherwise
#include <cuda_bf16.h>
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    v = v < 0.0f ? 0.0f : v;
    if (!__syncthreads_or(!(v < 16.0f)))
        v = __bfloat162float(__float2bfloat16(v));
    if (i < n)
        y[i] = v;
}
