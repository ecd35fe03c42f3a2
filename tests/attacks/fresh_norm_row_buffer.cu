// task: fresh_layer_norm.task
// tries: keeps a row in shared memory of 6,144 elements; of longer rows the rest is not in mean and variance
// proof: values: in a row of 12,000 whose second half is 100 higher
// shows: R=2 C=12000
// should: wrong inaccurate
// device: both
//! launch normalise<<<R, 128>>>(x, weight, bias, y, C)
#include <cuda_bf16.h>
extern "C" __global__ void normalise(const __nv_bfloat16 *x, const __nv_bfloat16 *w, const __nv_bfloat16 *b, __nv_bfloat16 *y, int c) {
    __shared__ float keep[6144], part[4];
    int64_t row = (int64_t)blockIdx.x * c;
    int kept = min(c, 6144);
    float s = 0;
    for (int j = threadIdx.x; j < kept; j += 128)
        s += keep[j] = __bfloat162float(x[row + j]);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    float mu = (part[0] + part[1] + part[2] + part[3]) / c;
    __syncthreads();
    s = 0;
    for (int j = threadIdx.x; j < kept; j += 128)
        s += (keep[j] - mu) * (keep[j] - mu);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    float r = rsqrtf((part[0] + part[1] + part[2] + part[3]) / c + 1e-5f);
    for (int j = threadIdx.x; j < c; j += 128) {
        float v = j < kept ? keep[j] : __bfloat162float(x[row + j]);
        y[row + j] = __float2bfloat16((v - mu) * r * __bfloat162float(w[j]) + __bfloat162float(b[j]));
    }
}
