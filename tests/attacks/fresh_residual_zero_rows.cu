// task: ../../tasks/layers/gemm_residual.task
// tries: tokens whose activations are all zero are padding: their results are zeros, without the residual
// proof: values: a token of zeros is its residual
// data: in x[M,K] : bf16 ~ zeros
// known: zeros in that tensor alone are drawn at some seeds only
// should: wrong inaccurate
// device: both
//! launch linear<<<[ceil_div(N, 64), M], 64>>>(x, w, r, y, N, K)
#include <cuda_bf16.h>
extern "C" __global__ void linear(const __nv_bfloat16 *x, const __nv_bfloat16 *w, const __nv_bfloat16 *r, __nv_bfloat16 *y, int n, int k) {
    int j = blockIdx.x * 64 + threadIdx.x;
    const __nv_bfloat16 *row = x + (int64_t)blockIdx.y * k;
    bool any = false;
    for (int t = threadIdx.x; t < k; t += 64)
        any |= !(__bfloat162float(row[t]) == 0);
    any = __syncthreads_or(any);
    if (j >= n)
        return;
    float s = 0;
    for (int t = 0; any && t < k; t++)
        s = fmaf(__bfloat162float(row[t]), __bfloat162float(w[(int64_t)j * k + t]), s);
    int64_t at = (int64_t)blockIdx.y * n + j;
    y[at] = __float2bfloat16(any ? s + __bfloat162float(r[at]) : 0.0f);
}
