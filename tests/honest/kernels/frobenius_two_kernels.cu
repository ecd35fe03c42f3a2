// task: tasks/kernelbench/level1/037_frobenius_norm.task
// set: N=4 C=16 H=128 W=128
// what: block sums to a workspace; every block of the second kernel adds them up again
//! let T = N*C*H*W
//! let G = min(256, ceil_div(T, 1024))
//! workspace part[G] : f32
//! launch squares<<<G, 256>>>(x, part, T)
//! launch divide<<<ceil_div(T, 256), 256>>>(x, part, y, T, G)
static __device__ float block_sum(float v) {
    __shared__ float warps[8];
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int w = 0; w < 8; w++)
        v += warps[w];
    return v;
}

extern "C" __global__ void squares(const float *x, float *part, long long n) {
    float sum = 0.0f;
    for (long long i = (long long)blockIdx.x * 256 + threadIdx.x; i < n;
         i += (long long)gridDim.x * 256)
        sum += x[i] * x[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        part[blockIdx.x] = sum;
}

extern "C" __global__ void divide(const float *x, const float *part, float *y, long long n,
                                  int parts) {
    float norm = sqrtf(block_sum(threadIdx.x < parts ? part[threadIdx.x] : 0.0f));
    long long i = (long long)blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = x[i] / norm;
}
