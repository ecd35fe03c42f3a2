// task: tasks/kernelbench/level1/033_batch_norm.task
// set: N=8 C=16 H=64 W=64
// what: a channel's statistics to a workspace, then an element-wise kernel
//! workspace statistics[C, 2] : f32
//! launch measure<<<C, 512>>>(x, statistics, N, C, H*W)
//! launch apply<<<ceil_div(N*C*H*W, 256), 256>>>(x, statistics, weight, bias, y, C, H*W, N*C*H*W)
static __device__ float block_mean(float v, float count, float *shared) {
    shared[threadIdx.x] = v;
    __syncthreads();
    for (int step = 256; step > 0; step /= 2) {
        if (threadIdx.x < step)
            shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    v = shared[0] / count;
    __syncthreads();
    return v;
}

extern "C" __global__ void measure(const float *x, float *statistics, int n, int c, int d) {
    __shared__ float shared[512];
    float sum = 0.0f, squares = 0.0f;
    for (int k = 0; k < n; k++)
        for (int j = threadIdx.x; j < d; j += 512)
            sum += x[((long long)k * c + blockIdx.x) * d + j];
    float mean = block_mean(sum, (float)n * d, shared);
    for (int k = 0; k < n; k++)
        for (int j = threadIdx.x; j < d; j += 512) {
            float v = x[((long long)k * c + blockIdx.x) * d + j] - mean;
            squares += v * v;
        }
    float variance = block_mean(squares, (float)n * d, shared);
    if (threadIdx.x == 0) {
        statistics[2 * blockIdx.x] = mean;
        statistics[2 * blockIdx.x + 1] = rsqrtf(variance + 1e-5f);
    }
}

extern "C" __global__ void apply(const float *x, const float *statistics, const float *weight,
                                 const float *bias, float *y, int c, int d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int k = i / d % c;
    y[i] = (x[i] - statistics[2 * k]) * statistics[2 * k + 1] * weight[k] + bias[k];
}
