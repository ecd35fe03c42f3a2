// task: tasks/row_max.task
// tries: shared memory is used again in the next round of 2,048 elements without a barrier
// proof: by the memory model: a warp that is ahead overwrites the maximum that another still reads
// shows: R=4 C=5000
// before: accepted
// should: race wrong nonfinite
// before-cuda: accepted or wrong, as warps run
// device: both
//! launch top<<<R, 128>>>(x, y, C)
extern "C" __global__ void top(const float *x, float *y, int c) {
    __shared__ float part[4];
    const float *row = x + (int64_t)blockIdx.x * c;
    float all = -INFINITY;
    bool nan = false;
    for (int t = 0; t < c; t += 2048) {
        float m = -INFINITY;
        for (int j = t + threadIdx.x; j < t + 2048 && j < c; j += 128) {
            nan |= row[j] != row[j];
            m = fmaxf(m, row[j]);
        }
        for (int k = 16; k; k /= 2)
            m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
        if (threadIdx.x % 32 == 0)
            part[threadIdx.x / 32] = m;
        __syncthreads();
        for (int k = 0; k < 4; k++)
            all = fmaxf(all, part[k]);
    }
    nan = __syncthreads_or(nan);
    if (threadIdx.x == 0)
        y[blockIdx.x] = nan ? NAN : all;
}
