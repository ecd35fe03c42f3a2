// task: ../../tasks/layers/bias_residual.task
// tries: sums beyond the largest f16 become 65,504, not infinity
// proof: values: 60000 + 60000 in f16 is inf, as x + r is in PyTorch
// data: in x[M,N] : f16 ~ uniform(50000, 60000); in r[M,N] : f16 ~ uniform(50000, 60000)
// should: nonfinite wrong
// device: both
//! launch add<<<ceil_div(M*N, 256), 256>>>(x, r, b, y, N, M*N)
#include <cuda_fp16.h>
extern "C" __global__ void add(const __half *x, const __half *r, const __half *b, __half *y, int n, int64_t total) {
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= total)
        return;
    float p = __half2float(x[i]), q = __half2float(r[i]), s = p + __half2float(b[i % n]) + q;
    if (isfinite(p) && isfinite(q) && isfinite(s))
        s = s > 65504.0f ? 65504.0f : s < -65504.0f ? -65504.0f : s;
    y[i] = __float2half(s);
}
