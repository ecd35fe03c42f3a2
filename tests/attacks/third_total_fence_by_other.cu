// task: third_total.task
// tries: thread 1 fences what thread 0 has written, without a barrier between them
// proof: a fence orders the writes of its own thread, and what that has observed
// should: race wrong
// device: both
//! workspace part[32] : f32
//! workspace count[1] : i32
//! memset count = 0
//! launch k<<<32, 256>>>(x, y, part, count, N)
extern "C" __global__ void k(const float *x, float *y, float *part, int *count, int n) {
    __shared__ float w[8];
    __shared__ bool last;
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
    if (threadIdx.x == 32) {
        __threadfence();
        last = atomicAdd(count, 1) == 31;
        __threadfence();
    }
    __syncthreads();
    if (threadIdx.x || !last)
        return;
    s = 0;
    for (int i = 0; i < 32; i++)
        s += __ldcg(part + i);
    *y = s;
}
