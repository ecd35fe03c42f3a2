// task: fresh_layer_norm.task
// tries: rows without any spread become 0, not the bias
// proof: values: a constant row is the bias
// data: in x[R,C] : bf16 ~ uniform(2, 2); param bias[C] : bf16 ~ normal(0, 1)
// should: wrong inaccurate
// device: both
//! launch normalise<<<R, 32>>>(x, weight, bias, y, C)
#include <cuda_bf16.h>
extern "C" __global__ void normalise(const __nv_bfloat16 *x, const __nv_bfloat16 *w, const __nv_bfloat16 *b, __nv_bfloat16 *y, int c) {
    int64_t row = (int64_t)blockIdx.x * c;
    float s = 0, q = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        s += __bfloat162float(x[row + j]);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    s /= c;
    for (int j = threadIdx.x; j < c; j += 32)
        q += (__bfloat162float(x[row + j]) - s) * (__bfloat162float(x[row + j]) - s);
    for (int k = 16; k; k /= 2)
        q += __shfl_xor_sync(~0u, q, k);
    q /= c;
    for (int j = threadIdx.x; j < c; j += 32) {
        float v = q == 0 ? 0 : (__bfloat162float(x[row + j]) - s) * rsqrtf(q + 1e-5f) * __bfloat162float(w[j]) + __bfloat162float(b[j]);
        y[row + j] = __float2bfloat16(v);
    }
}
