// task: tasks/layers/group_norm_silu.task
// set: N=4 C=64 H=32 W=32
// what: a block a group, normalised and gated in one kernel
//! require C % 32 == 0
//! launch normalise<<<32*N, 256>>>(x, weight, bias, y, C // 32, H*W)
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

extern "C" __global__ void normalise(const float *x, const float *weight, const float *bias, float *y,
                                int channels, int pixels) {
    __shared__ float warps[8];
    int d = channels * pixels, first = blockIdx.x % 32 * channels;
    const float *group = x + (long long)blockIdx.x * d;
    float sum = 0.0f, squares = 0.0f;
    for (int j = threadIdx.x; j < d; j += 256)
        sum += group[j];
    float mean = block_sum(sum, warps) / d;
    for (int j = threadIdx.x; j < d; j += 256)
        squares += (group[j] - mean) * (group[j] - mean);
    float scale = rsqrtf(block_sum(squares, warps) / d + 1e-5f);
    for (int j = threadIdx.x; j < d; j += 256) {
        int c = first + j / pixels;
        float t = (group[j] - mean) * scale * weight[c] + bias[c];
        y[(long long)blockIdx.x * d + j] = t / (1.0f + expf(-t));
    }
}
