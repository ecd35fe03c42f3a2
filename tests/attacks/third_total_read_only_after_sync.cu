// task: third_total.task
// tries: reads by the read-only path what other blocks wrote in the same cooperative launch
// proof: ld.global.nc may return stale data where the memory is written while the kernel runs (PTX)
// should: race wrong
// device: both
//! workspace part[32] : f32
//! launch k<<<32, 256, cooperative>>>(x, y, part, N)
#include <cooperative_groups.h>
extern "C" __global__ void k(const float *x, float *y, float *part, int n) {
    __shared__ float w[8];
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 32 * 256)
        s += x[i];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++)
            s += w[i];
        part[blockIdx.x] = s;
    }
    cooperative_groups::this_grid().sync();
    if (blockIdx.x + threadIdx.x == 0) {
        s = 0;
        for (int i = 0; i < 32; i++)
            s += __ldg(part + i);
        *y = s;
    }
}
