// task: tasks/kernelbench/level1/023_softmax.task
// set: B=256 D=4096
// what: maximum, sum and quotient in three passes over the row
//! launch softmax<<<B, 256>>>(x, y, D)
extern "C" __global__ void softmax(const float *x, float *y, int d) {
    __shared__ float part[256];
    const float *row = x + (long long)blockIdx.x * d;
    float top = -INFINITY, sum = 0.0f;
    for (int j = threadIdx.x; j < d; j += 256)
        top = fmaxf(top, row[j]);
    part[threadIdx.x] = top;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step)
            part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + step]);
        __syncthreads();
    }
    top = part[0];
    __syncthreads();
    for (int j = threadIdx.x; j < d; j += 256)
        sum += expf(row[j] - top);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step)
            part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    sum = part[0];
    for (int j = threadIdx.x; j < d; j += 256)
        y[(long long)blockIdx.x * d + j] = expf(row[j] - top) / sum;
}
