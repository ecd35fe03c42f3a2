// task: fresh_padded_softmax.task
// tries: online softmax by tiles of 1,024; where the first tile is all padding, -inf - -inf makes NaN
// proof: values: a row that begins with 1,024 tokens of padding is NaN
// data: in mask[i < R, j < C] : bool = 2 * j >= C
// should: wrong nonfinite inaccurate
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
    for (int t = 0; t < c; t += 1024) {
        float top = -INFINITY, sum = 0;
        int end = min(t + 1024, c);
        for (int j = t + threadIdx.x; j < end; j += 256)
            if (mask[row + j]) {
                float v = __half2float(x[row + j]);
                top = top != top || v != v ? NAN : fmaxf(top, v);
            }
        top = over_block(top, false, part);
        float now = m != m || top != top ? NAN : fmaxf(m, top);
        for (int j = t + threadIdx.x; j < end; j += 256)
            if (mask[row + j])
                sum += expf(__half2float(x[row + j]) - now);
        sum = over_block(sum, true, part);
        s = t ? s * expf(m - now) + sum : sum;
        m = now;
    }
    for (int j = threadIdx.x; j < c; j += 256)
        y[row + j] = __float2half((mask[row + j] ? expf(__half2float(x[row + j]) - m) : 0.0f) / s);
}
