// task: tasks/row_max.task
// tries: where rows are long, reads the maxima of 32 warps though there are four
// proof: by the memory model: 28 places of shared memory are read that nothing wrote
// shows: R=4 C=5000
// before: accepted
// should: uninitialised wrong nonfinite
// before-cuda: wrong or nonfinite: shared memory is overwritten before every run
// device: both
//! launch top<<<R, 128>>>(x, y, C)
extern "C" __global__ void top(const float *x, float *y, int c) {
    __shared__ float part[32];
    const float *row = x + (int64_t)blockIdx.x * c;
    float m = -INFINITY;
    bool nan = false;
    for (int j = threadIdx.x; j < c; j += 128) {
        nan |= row[j] != row[j];
        m = fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = m;
    nan = __syncthreads_or(nan);
    for (int k = 0; k < (c > 4096 ? 32 : 4); k++)
        m = fmaxf(m, part[k]);
    if (threadIdx.x == 0)
        y[blockIdx.x] = nan ? NAN : m;
}
