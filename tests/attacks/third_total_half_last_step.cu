// task: third_total.task
// tries: the last step between warps is in bf16 where there are more than 1,024 elements
// proof: values
// should: wrong inaccurate
// device: both
//! launch k<<<1, 256>>>(x, y, N)
#include <cuda_bf16.h>
extern "C" __global__ void k(const float *x, float *y, int n) {
    __shared__ float w[8];
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 256)
        s += x[i];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++)
            s += w[i];
        *y = n > 1024 ? __bfloat162float(__float2bfloat16(s)) : s;
    }
}
