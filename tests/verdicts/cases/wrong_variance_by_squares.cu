// expect: wrong inaccurate nonfinite
// row: 3
// tries: the variance as E[x*x] - E[x]*E[x] in fp32: fine around zero, lost far from it
// task: ../../tasks/kernelbench/level1/034_instance_norm.task
// set: N=2 C=8 H=32 W=32
//! launch normalise<<<N*C, 128>>>(x, y, H*W)
static __device__ float block_sum(float v, float *warps) {
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = v;
    __syncthreads();
    return (warps[0] + warps[1]) + (warps[2] + warps[3]);
}

extern "C" __global__ void normalise(const float *x, float *y, int d) {
    __shared__ float warps[4];
    const float *row = x + (long long)blockIdx.x * d;
    float sum = 0.0f, squares = 0.0f;
    for (int j = threadIdx.x; j < d; j += 128) {
        sum += row[j];
        squares += row[j] * row[j];
    }
    float mean = block_sum(sum, warps) / d;
    float scale = rsqrtf(block_sum(squares, warps) / d - mean * mean + 1e-5f);
    for (int j = threadIdx.x; j < d; j += 128)
        y[(long long)blockIdx.x * d + j] = (row[j] - mean) * scale;
}
