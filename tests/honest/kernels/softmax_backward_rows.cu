// task: tasks/layers/softmax_backward.task
// set: B=512 D=2048
// what: the row's dot product, then the gradient
//! launch backward<<<B, 256>>>(y, dy, dx, D)
extern "C" __global__ void backward(const float *y, const float *dy, float *dx, int d) {
    __shared__ float warps[8];
    long long base = (long long)blockIdx.x * d;
    float dot = 0.0f;
    for (int j = threadIdx.x; j < d; j += 256)
        dot += dy[base + j] * y[base + j];
    for (int step = 16; step > 0; step /= 2)
        dot += __shfl_xor_sync(0xffffffffu, dot, step);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = dot;
    __syncthreads();
    dot = 0.0f;
    for (int w = 0; w < 8; w++)
        dot += warps[w];
    for (int j = threadIdx.x; j < d; j += 256)
        dx[base + j] = y[base + j] * (dy[base + j] - dot);
}
