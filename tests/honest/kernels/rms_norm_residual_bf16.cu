// task: tasks/layers/rms_norm_residual.task
// set: T=512 D=2048
// what: a block a row; both results from one read of the inputs, the row kept in shared memory
#include <cuda_bf16.h>
//! require D <= 16384
//! launch normalise<<<T, 256, 4*D>>>(x, r, weight, h, y, D)
extern "C" __global__ void normalise(const __nv_bfloat16 *x, const __nv_bfloat16 *r,
                                const __nv_bfloat16 *weight, __nv_bfloat16 *h, __nv_bfloat16 *y,
                                int d) {
    extern __shared__ float row[];
    __shared__ float part[8];
    long long base = (long long)blockIdx.x * d;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < d; j += blockDim.x) {
        float a = __bfloat162float(x[base + j]) + __bfloat162float(r[base + j]);
        row[j] = a;
        h[base + j] = __float2bfloat16_rn(a);
        sum += a * a;
    }
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int w = 0; w < 8; w++)
        sum += part[w];
    float g = rsqrtf(sum / d + 1e-6f);
    for (int j = threadIdx.x; j < d; j += blockDim.x)
        y[base + j] = __float2bfloat16_rn(row[j] * g * __bfloat162float(weight[j]));
}
