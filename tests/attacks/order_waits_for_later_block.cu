// task: tasks/row_sum.task
// set: R=4096 C=4096
// tries: each block waits for the one after it, so that a grid larger than what the GPU holds waits for ever
// proof: by the launch: of 4,096 blocks of 1,024 threads 264 are on an H200 at a time, and the first ones wait for the last
// before: no-progress
// should: no-progress timeout launch-error
// before-cuda: timeout
// device: both
//! workspace flag[R] : i32
//! memset flag = 0
//! launch sum<<<R, 1024>>>(x, y, flag, C)
extern "C" __global__ void sum(const float *x, float *y, int *flag, int c) {
    __shared__ float part[32];
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 1024)
        s += row[j];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int k = 1; k < 32; k++)
        s += part[k];
    y[blockIdx.x] = s;
    __threadfence();
    while (blockIdx.x + 1 < gridDim.x && atomicAdd(flag + blockIdx.x + 1, 0) == 0)
        ;
    atomicExch(flag + blockIdx.x, 1);
}
