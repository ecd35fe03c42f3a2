// task: tasks/kernelbench/level1/098_kl_div_loss.task
// set: B=512 D=2048
// what: the last block to finish adds the others' sums; a counter in a workspace finds it
//! let G = min(264, ceil_div(B*D, 256))
//! workspace part[G] : f32
//! workspace done[1] : i32
//! memset done = 0
//! launch divergence<<<G, 256>>>(predictions, targets, part, done, loss, B, D)
static __device__ float block_sum(float v, float *warps) {
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int w = 0; w < 8; w++)
        v += warps[w];
    return v;
}

extern "C" __global__ void divergence(const float *p, const float *t, float *part, int *done,
                                      float *loss, int rows, int cols) {
    __shared__ float warps[8];
    __shared__ bool last;
    long long n = (long long)rows * cols;
    float sum = 0.0f;
    for (long long i = (long long)blockIdx.x * 256 + threadIdx.x; i < n;
         i += (long long)gridDim.x * 256)
        sum += t[i] * (logf(t[i]) - logf(p[i]));
    sum = block_sum(sum, warps);
    if (threadIdx.x == 0) {
        part[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(done, 1) == (int)gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    sum = 0.0f;
    for (int i = threadIdx.x; i < gridDim.x; i += 256)
        sum += __ldcg(part + i);
    sum = block_sum(sum, warps);
    if (threadIdx.x == 0)
        *loss = sum / (float)rows;
}
