// task: tasks/kernelbench/level1/095_cross_entropy_loss.task
// set: B=512 C=2048
// what: a block a row with two passes, then the mean
//! workspace row[B] : f32
//! launch entropy<<<B, 256>>>(predictions, targets, row, C)
//! launch mean<<<1, 256>>>(row, loss, B)
static __device__ float block_sum(float v, float *shared) {
    shared[threadIdx.x] = v;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step)
            shared[threadIdx.x] += shared[threadIdx.x + step];
        __syncthreads();
    }
    return shared[0];
}

extern "C" __global__ void entropy(const float *x, const long long *t, float *row, int c) {
    __shared__ float shared[256];
    const float *p = x + (long long)blockIdx.x * c;
    float top = -INFINITY, sum = 0.0f;
    for (int j = threadIdx.x; j < c; j += 256)
        top = fmaxf(top, p[j]);
    shared[threadIdx.x] = top;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step)
            shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + step]);
        __syncthreads();
    }
    top = shared[0];
    __syncthreads();
    for (int j = threadIdx.x; j < c; j += 256)
        sum += expf(p[j] - top);
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0)
        row[blockIdx.x] = top + logf(sum) - p[t[blockIdx.x]];
}

extern "C" __global__ void mean(const float *row, float *loss, int rows) {
    __shared__ float shared[256];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < rows; i += 256)
        sum += row[i];
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0)
        *loss = sum / rows;
}
