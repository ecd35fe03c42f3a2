// task: tasks/kernelbench/level1/034_instance_norm.task
// set: N=8 C=16 H=64 W=64
// what: mean, then the mean of the squared differences
//! launch normalise<<<N*C, 256>>>(x, y, H*W)
static __device__ float block_mean(float v, int d, float *warps) {
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int w = 0; w < 8; w++)
        v += warps[w];
    return v / d;
}

extern "C" __global__ void normalise(const float *x, float *y, int d) {
    __shared__ float warps[8];
    const float *row = x + (long long)blockIdx.x * d;
    float sum = 0.0f, squares = 0.0f;
    for (int j = threadIdx.x; j < d; j += 256)
        sum += row[j];
    float mean = block_mean(sum, d, warps);
    for (int j = threadIdx.x; j < d; j += 256)
        squares += (row[j] - mean) * (row[j] - mean);
    float scale = rsqrtf(block_mean(squares, d, warps) + 1e-5f);
    for (int j = threadIdx.x; j < d; j += 256)
        y[(long long)blockIdx.x * d + j] = (row[j] - mean) * scale;
}
