// task: third_total.task
// tries: warps that have stored their sums arrive, and warp 0 arrives as well and does not wait
// proof: bar.arrive orders nothing for the reads after it
// should: race wrong uninitialised
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
    asm volatile("bar.arrive 1, 256;" ::: "memory");
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++)
            s += w[i];
        *y = s;
    }
}
