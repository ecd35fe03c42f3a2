// task: tasks/row_sum.task
// tries: honest: every row has its own place in the workspace
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! workspace part[R] : f32
//! launch sum<<<R, 32>>>(x, part, C)
//! launch join<<<ceil_div(R, 32), 32>>>(part, y, R)
extern "C" __global__ void sum(const float *x, float *part, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        s += row[j];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        part[blockIdx.x] = s;
}
extern "C" __global__ void join(const float *part, float *y, int r) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < r)
        y[i] = part[i];
}
