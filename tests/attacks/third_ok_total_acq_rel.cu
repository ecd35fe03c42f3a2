// task: third_total.task
// tries: honest: the last block by atom.acq_rel, no other fence; the reset of the counter is left to the plan
// should: accepted
// device: both
//! workspace part[32] : f32
//! workspace count[1] : u8
//! workspace ticket[1] : i32
//! memset ticket = 0
//! launch k<<<32, 256>>>(x, y, part, ticket, N)
extern "C" __global__ void k(const float *x, float *y, float *part, int *count, int n) {
    __shared__ float w[8];
    float s = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 32 * 256)
        s += x[i];
    for (int d = 16; d; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0)
        w[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int i = 1; i < 8; i++)
        s += w[i];
    part[blockIdx.x] = s;
    int before;
    asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(count) : "memory");
    if (before != 31)
        return;
    s = 0;
    for (int i = 0; i < 32; i++)
        s += part[i];
    *y = s;
}
