// task: third_total.task
// tries: blocks add to an output that block 0 begins by a plain store
// proof: order of the blocks
// should: race wrong uninitialised unwritten inaccurate
// device: both
//! launch k<<<32, 256>>>(x, y, N)
extern "C" __global__ void k(const float *x, float *y, int n) {
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 32 * 256)
        s += x[i];
    if (blockIdx.x + threadIdx.x == 0)
        *y = 0;
    __syncthreads();
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0)
        atomicAdd(y, s);
}
