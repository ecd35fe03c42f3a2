// task: tasks/layers/log_sum_exp.task
// set: B=512 D=2048
// what: a block a row, maximum first
//! launch lse<<<B, 128>>>(x, y, D)
extern "C" __global__ void lse(const float *x, float *y, int d) {
    __shared__ float part[4];
    const float *row = x + (long long)blockIdx.x * d;
    float top = -INFINITY, sum = 0.0f;
    for (int j = threadIdx.x; j < d; j += 128)
        top = fmaxf(top, row[j]);
    for (int step = 16; step > 0; step /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = top;
    __syncthreads();
    top = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
    __syncthreads();
    for (int j = threadIdx.x; j < d; j += 128)
        sum += expf(row[j] - top);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = top + logf((part[0] + part[1]) + (part[2] + part[3]));
}
