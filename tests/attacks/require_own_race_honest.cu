// task: tasks/copy.task
// tries: honest: the same with the barrier
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! require R*C >= 200000
//! require C <= 1024
//! require C % 64 == 0
//! launch twice<<<R, C>>>(x, y, C)
extern "C" __global__ void twice(const float *x, float *y, int c) {
    __shared__ float row[1024];
    int from = c - 32 - threadIdx.x / 32 * 32 + threadIdx.x % 32; // the last warp's first
    row[threadIdx.x] = 2 * x[blockIdx.x * c + threadIdx.x];
    __syncthreads();
    if (threadIdx.x >= c / 2)
        y[blockIdx.x * c + from] = row[from];
    if (threadIdx.x >= c / 2)
        y[blockIdx.x * c + threadIdx.x] = row[threadIdx.x];
}
