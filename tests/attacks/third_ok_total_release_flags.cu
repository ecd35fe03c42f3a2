// task: third_total.task
// tries: honest: 32 blocks publish sums by st.release, block 0 waits for all by ld.acquire
// should: accepted
// device: both
//! workspace part[32] : f32
//! workspace flag[32] : i32
//! memset flag = 0
//! launch k<<<32, 256>>>(x, y, part, flag, N)
extern "C" __global__ void k(const float *x, float *y, float *part, int *flag, int n) {
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
        asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(flag + blockIdx.x) : "memory");
    }
    if (blockIdx.x || threadIdx.x >= 32)
        return;
    int ready = 0;
    while (!ready)
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(ready) : "l"(flag + threadIdx.x) : "memory");
    s = part[threadIdx.x];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x == 0)
        *y = s;
}
