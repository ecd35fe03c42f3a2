// task: fresh_layer_norm.task
// tries: honest: mean and sum of squares by Welford in every thread, joined by Chan's rule
// proof: none; it is right
// should: accepted
// device: both
//! launch normalise<<<R, 64>>>(x, weight, bias, y, C)
#include <cuda_bf16.h>
struct moments {
    float n, mu, m2;
};
__device__ moments joined(moments a, moments b) {
    if (b.n == 0)
        return a;
    if (a.n == 0)
        return b;
    float n = a.n + b.n, d = b.mu - a.mu;
    return {n, a.mu + d * (b.n / n), a.m2 + b.m2 + d * d * (a.n * b.n / n)};
}
extern "C" __global__ void normalise(const __nv_bfloat16 *x, const __nv_bfloat16 *w, const __nv_bfloat16 *b, __nv_bfloat16 *y, int c) {
    __shared__ moments part[2];
    int64_t row = (int64_t)blockIdx.x * c;
    moments t = {0, 0, 0};
    for (int j = threadIdx.x; j < c; j += 64) {
        float v = __bfloat162float(x[row + j]), d = v - t.mu;
        t.n += 1;
        t.mu += d / t.n;
        t.m2 = fmaf(d, v - t.mu, t.m2);
    }
    for (int k = 16; k; k /= 2) {
        moments o = {__shfl_xor_sync(~0u, t.n, k), __shfl_xor_sync(~0u, t.mu, k), __shfl_xor_sync(~0u, t.m2, k)};
        t = threadIdx.x & k ? joined(o, t) : joined(t, o);
    }
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = t;
    __syncthreads();
    t = joined(part[0], part[1]);
    float r = rsqrtf(t.m2 / c + 1e-5f);
    for (int j = threadIdx.x; j < c; j += 64)
        y[row + j] = __float2bfloat16(fmaf((__bfloat162float(x[row + j]) - t.mu) * r, __bfloat162float(w[j]), __bfloat162float(b[j])));
}
