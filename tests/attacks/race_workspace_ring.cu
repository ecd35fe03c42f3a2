// task: tasks/row_sum.task
// tries: rows share 1,024 places of a workspace, so that blocks of a larger grid overwrite each other
// proof: values, R = 3000 C = 8: rows from 1,024 on share their places; at R = 16384 every place belongs to sixteen rows
// shows: R=3000 C=8
// before: accepted
// should: race wrong inaccurate
// before-cuda: wrong
// device: both
//! workspace part[1024] : f32
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
        part[blockIdx.x % 1024] = s;
}
extern "C" __global__ void join(const float *part, float *y, int r) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < r)
        y[i] = part[i % 1024];
}
