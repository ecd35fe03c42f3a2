// task: fresh_padded_softmax.task
// tries: honest: online softmax by tiles of 256, where a tile of padding alone changes nothing
// proof: none; it is right
// should: accepted
// device: both
//! launch softmax<<<R, 256>>>(x, mask, y, C)
#include <cuda_fp16.h>
__device__ float over_block(float v, bool sum, float *part) {
    for (int k = 16; k; k /= 2) {
        float o = __shfl_xor_sync(~0u, v, k);
        v = sum ? v + o : v != v || o != o ? NAN : fmaxf(v, o);
    }
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int k = 1; k < 8; k++)
        v = sum ? v + part[k] : v != v || part[k] != part[k] ? NAN : fmaxf(v, part[k]);
    __syncthreads();
    return v;
}
extern "C" __global__ void softmax(const __half *x, const bool *mask, __half *y, int c) {
    __shared__ float part[8];
    int64_t row = (int64_t)blockIdx.x * c;
    float m = -INFINITY, s = 0;
    for (int t = 0; t < c; t += 256) {
        int j = t + threadIdx.x;
        bool in = j < c && mask[row + j];
        if (!__syncthreads_or(in))
            continue;
        float v = in ? __half2float(x[row + j]) : -INFINITY;
        float top = over_block(v, false, part), now = m != m || top != top ? NAN : fmaxf(m, top);
        float sum = over_block(in && now != -INFINITY ? expf(v - now) : 0.0f, true, part);
        s = m == -INFINITY && s == 0 ? sum : s * expf(m - now) + sum;
        m = now;
    }
    for (int j = threadIdx.x; j < c; j += 256)
        y[row + j] = __float2half((mask[row + j] ? expf(__half2float(x[row + j]) - m) : 0.0f) / s);
}
