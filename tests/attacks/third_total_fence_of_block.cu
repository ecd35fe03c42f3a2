// task: third_total.task
// tries: the last block adds the others' sums, which they have only fenced for their own block
// proof: __threadfence_block orders nothing for threads of other blocks
// should: race wrong
// device: both
//! workspace part[32] : f32
//! workspace count[1] : i32
//! memset count = 0
//! launch k<<<32, 256>>>(x, y, part, count, N)
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
    __threadfence_block();
    if (atomicAdd(count, 1) != 31)
        return;
    __threadfence();
    s = 0;
    for (int i = 0; i < 32; i++)
        s += __ldcg(part + i);
    *y = s;
}
