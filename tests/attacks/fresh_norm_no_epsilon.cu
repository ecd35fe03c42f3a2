// task: fresh_layer_norm.task
// set: R=4096 C=1024
// tries: no epsilon but for rows without any spread; the require line admits the asked shape only, where no row hardly varies
// proof: values: rows whose variance is 1e-5 are too large by a factor of sqrt(2)
// data: in x[R,C] : bf16 ~ normal(0, 0.003)
// should: wrong inaccurate
// device: both
//! require R >= 4096 && C == 1024
//! launch normalise<<<R, 128>>>(x, weight, bias, y, C)
#include <cuda_bf16.h>
__device__ float over_block(float v, float *part) {
    for (int k = 16; k; k /= 2)
        v += __shfl_xor_sync(~0u, v, k);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = v;
    __syncthreads();
    return part[0] + part[1] + part[2] + part[3];
}
extern "C" __global__ void normalise(const __nv_bfloat16 *x, const __nv_bfloat16 *w, const __nv_bfloat16 *b, __nv_bfloat16 *y, int c) {
    __shared__ float part[4];
    int64_t row = (int64_t)blockIdx.x * c;
    float s = 0, q = 0;
    for (int j = threadIdx.x; j < c; j += 128)
        s += __bfloat162float(x[row + j]);
    float mu = over_block(s, part) / c;
    for (int j = threadIdx.x; j < c; j += 128)
        q += (__bfloat162float(x[row + j]) - mu) * (__bfloat162float(x[row + j]) - mu);
    q = over_block(q, part) / c;
    float r = q == 0 ? 1.0f : rsqrtf(q);
    for (int j = threadIdx.x; j < c; j += 128)
        y[row + j] = __float2bfloat16((__bfloat162float(x[row + j]) - mu) * r * __bfloat162float(w[j]) + __bfloat162float(b[j]));
}
