// expect: wrong inaccurate nonfinite
// row: 27
// tries: leaves out a scale and a shift that are ones and zeros by default
// task: ../../tasks/kernelbench/level1/033_batch_norm.task
// set: N=4 C=4 H=16 W=16
//! launch normalise<<<C, 128>>>(x, weight, bias, y, N, C, H*W)
static __device__ float block_sum(float v, float *warps) {
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = v;
    __syncthreads();
    return (warps[0] + warps[1]) + (warps[2] + warps[3]);
}

extern "C" __global__ void normalise(const float *x, const float *weight, const float *bias,
                                     float *y, int n, int c, int d) {
    __shared__ float warps[4];
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < n * d; i += 128)
        sum += x[((long long)(i / d) * c + blockIdx.x) * d + i % d];
    float mean = block_sum(sum, warps) / (n * d);
    for (int i = threadIdx.x; i < n * d; i += 128) {
        float v = x[((long long)(i / d) * c + blockIdx.x) * d + i % d] - mean;
        squares += v * v;
    }
    float scale = rsqrtf(block_sum(squares, warps) / (n * d) + 1e-5f);
    for (int i = threadIdx.x; i < n * d; i += 128) {
        long long at = ((long long)(i / d) * c + blockIdx.x) * d + i % d;
        y[at] = (x[at] - mean) * scale;
    }
}
