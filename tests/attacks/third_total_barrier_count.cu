// task: third_total.task
// tries: the barrier before the sums are read is for 224 of 256 threads
// proof: eight warps arrive at a barrier for seven: one goes on too early, or the next round waits
// should: race no-progress wrong crash
// device: both
//! launch k<<<1, 256>>>(x, y, N)
extern "C" __global__ void k(const float *x, float *y, int n) {
    __shared__ float w[8];
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 256)
        s += x[i];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = s;
    asm volatile("bar.sync 1, 224;" ::: "memory");
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++)
            s += w[i];
        *y = s;
    }
}
