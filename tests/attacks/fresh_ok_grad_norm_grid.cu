// task: fresh_grad_norm.task
// tries: honest: compensated sums, and the blocks wait for each other by a cooperative launch
// proof: none; it is right
// should: accepted
// device: both
//! workspace part[64] : f64
//! launch normalise<<<64, 256, cooperative>>>(x, part, y, N)
#include <cooperative_groups.h>
extern "C" __global__ void normalise(const float *x, double *part, float *y, int n) {
    __shared__ double warps[8];
    float s = 0, lost = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 64 * 256) {
        float v = x[i] * x[i] - lost, t = s + v;
        lost = (t - s) - v;
        s = t;
    }
    double d = (double)s - lost;
    for (int k = 16; k; k /= 2)
        d += __shfl_xor_sync(~0u, d, k);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = d;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < 8; k++)
            d += warps[k];
        part[blockIdx.x] = d;
    }
    cooperative_groups::this_grid().sync();
    if (blockIdx.x == 0 && threadIdx.x < 32) {
        d = part[threadIdx.x] + part[threadIdx.x + 32];
        for (int k = 16; k; k /= 2)
            d += __shfl_xor_sync(~0u, d, k);
        if (threadIdx.x == 0)
            *y = (float)sqrt(d);
    }
}
