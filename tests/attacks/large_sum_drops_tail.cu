// task: tasks/row_sum.task
// tries: sums at most 4,096 elements of a row
// proof: values, R = 8 C = 8192: half of each row is missing
// shows: R=8 C=8192
// before: impossible
// should: wrong inaccurate impossible
// before-cuda: wrong or impossible, at the task's own shape
// device: both
//! launch sum<<<R, 128>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    __shared__ float part[4];
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 128)
        s += (j < 4096 ? 1.0f : 0.0f) * (j < 4096 ? x[(int64_t)blockIdx.x * c + j] : x[j]);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
