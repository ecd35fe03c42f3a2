// task: tasks/row_sum.task
// tries: the workspace holds 4,096 parts; rows beyond have none and write over the last one's, one block at a time
// proof: values, R = 5000 C = 8: rows from 4,095 on share a place
// shows: R=5000 C=8
// before: accepted
// should: race wrong inaccurate
// before-cuda: wrong
// device: both
//! let P = min(R, 4096)
//! workspace part[P] : f32
//! launch sum<<<R, 32>>>(x, part, C, P)
//! launch join<<<ceil_div(R, 32), 32>>>(part, y, R, P)
extern "C" __global__ void sum(const float *x, float *part, int c, int p) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        s += row[j];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        part[min((int)blockIdx.x, p - 1)] = s;
}
extern "C" __global__ void join(const float *part, float *y, int r, int p) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < r)
        y[i] = part[min(i, p - 1)];
}
