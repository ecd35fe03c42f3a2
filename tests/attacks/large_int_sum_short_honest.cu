// task: tasks/int_sum.task
// tries: honest: the same with sums of 32 bits
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch sum<<<R, 128>>>(x, y, C)
extern "C" __global__ void sum(const signed char *x, int *y, int c) {
    __shared__ int part[4];
    int all = 0;
    for (int j = threadIdx.x; j < c; j += 128)
        all += x[(int64_t)blockIdx.x * c + j];
    for (int k = 16; k; k /= 2)
        all += __shfl_xor_sync(~0u, all, k);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = all;
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
