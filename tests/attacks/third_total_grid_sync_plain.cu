// task: third_total.task
// tries: blocks wait for each other by cooperative groups in a launch that is not cooperative
// proof: this_grid().sync() needs a cooperative launch
// should: no-progress crash launch-error wrong uninitialised out-of-bounds unsupported bad-plan forbidden
// device: both
//! workspace part[32] : f32
//! launch k<<<32, 256>>>(x, y, part, N)
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
        for (int i = 1; i < 32; i++)
            s += part[i];
        *y = s;
    }
}
