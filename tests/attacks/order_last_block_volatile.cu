// task: tasks/row_sum.task
// tries: rows longer than 2,048 are shared by two blocks; the second adds what the first left, without waiting
// proof: by the launch: blocks run in any order; the second may read the part before it is written
// shows: R=4 C=5000
// before: accepted
// should: race uninitialised wrong nonfinite
// before-cuda: wrong
// device: both
//! workspace part[R] : f32
//! let S = 1 + min(1, C // 2049)
//! launch sum<<<[S, R], 32>>>(x, y, part, C)
extern "C" __global__ void sum(const float *x, float *y, float *part, int c) {
    const float *row = x + (int64_t)blockIdx.y * c;
    int parts = gridDim.x;
    float s = 0;
    for (int j = blockIdx.x * 32 + threadIdx.x; j < c; j += 32 * parts)
        s += row[j];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x)
        return;
    if (parts == 1)
        y[blockIdx.y] = s;
    else if (blockIdx.x == 0)
        part[blockIdx.y] = s;
    else
        y[blockIdx.y] = s + part[blockIdx.y];
}
