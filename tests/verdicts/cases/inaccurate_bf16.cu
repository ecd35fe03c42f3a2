// expect: inaccurate
// row: 4
// tries: values rounded to bf16
#include <cuda_bf16.h>
//! launch relu<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] < 0.0f ? 0.0f : __bfloat162float(__float2bfloat16(x[i]));
}
