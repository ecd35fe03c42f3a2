// task: third_total.task
// tries: four warp groups ask for 240 registers a thread, more than an SM has
// proof: 4 * 128 * 240 is more than 65,536: setmaxnreg.inc waits for ever
// should: no-progress launch-error timeout crash unsupported forbidden
// device: both
//! launch k<<<1, 512>>>(x, y, N)
extern "C" __global__ __launch_bounds__(512, 1) void k(const float *x, float *y, int n) {
    __shared__ float w[16];
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    float s = 0;
    for (int i = threadIdx.x; i < n; i += 512)
        s += x[i];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 16; i++)
            s += w[i];
        *y = s;
    }
}
