// task: fresh_layer_norm.task
// tries: variance as the mean of squares less the square of the mean, in fp32: enough for a mean of 16, not for rows that hardly vary
// proof: values: a row of 254 and a few 255 has a variance near 0.01, and its squares an error near 0.004
// data: rand u[R,C] ~ bernoulli(0.004); in x[i < R, j < C] : bf16 = 255 - u[i,j]
// known: no kind of data in bf16 has rows that hardly vary
// should: wrong inaccurate nonfinite
// device: both
//! launch normalise<<<R, 128>>>(x, weight, bias, y, C)
#include <cuda_bf16.h>
extern "C" __global__ void normalise(const __nv_bfloat16 *x, const __nv_bfloat16 *w, const __nv_bfloat16 *b, __nv_bfloat16 *y, int c) {
    __shared__ float part[2][4];
    int64_t row = (int64_t)blockIdx.x * c;
    float s = 0, q = 0;
    for (int j = threadIdx.x; j < c; j += 128) {
        float v = __bfloat162float(x[row + j]);
        s += v;
        q += v * v;
    }
    for (int k = 16; k; k /= 2) {
        s += __shfl_xor_sync(~0u, s, k);
        q += __shfl_xor_sync(~0u, q, k);
    }
    if (threadIdx.x % 32 == 0) {
        part[0][threadIdx.x / 32] = s;
        part[1][threadIdx.x / 32] = q;
    }
    __syncthreads();
    float mu = (part[0][0] + part[0][1] + part[0][2] + part[0][3]) / c;
    float var = (part[1][0] + part[1][1] + part[1][2] + part[1][3]) / c - mu * mu;
    float r = rsqrtf((var < 0 ? 0 : var) + 1e-5f);
    for (int j = threadIdx.x; j < c; j += 128)
        y[row + j] = __float2bfloat16((__bfloat162float(x[row + j]) - mu) * r * __bfloat162float(w[j]) + __bfloat162float(b[j]));
}
