// task: fresh_padded_softmax.task
// tries: padding counts as -10,000 in place of -inf
// proof: values: where all elements are below -20,000 the padding gets all of the sum
// data: in x[R,C] : f16 ~ uniform(-30000, -20000)
// known: the data that show it are drawn at some seeds only
// should: wrong nonfinite inaccurate
// device: both
//! launch softmax<<<R, 32>>>(x, mask, y, C)
#include <cuda_fp16.h>
extern "C" __global__ void softmax(const __half *x, const bool *mask, __half *y, int c) {
    int64_t row = (int64_t)blockIdx.x * c;
    float m = -INFINITY, s = 0;
    for (int j = threadIdx.x; j < c; j += 32) {
        float v = mask[row + j] ? __half2float(x[row + j]) : -10000.0f;
        m = m != m || v != v ? NAN : fmaxf(m, v);
    }
    for (int k = 16; k; k /= 2) {
        float o = __shfl_xor_sync(~0u, m, k);
        m = m != m || o != o ? NAN : fmaxf(m, o);
    }
    for (int j = threadIdx.x; j < c; j += 32)
        s += expf((mask[row + j] ? __half2float(x[row + j]) : -10000.0f) - m);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    for (int j = threadIdx.x; j < c; j += 32)
        y[row + j] = __float2half((mask[row + j] ? expf(__half2float(x[row + j]) - m) : 0.0f) / s);
}
