// task: tasks/row_max.task
// tries: honest: the maximum begins with NaN that is written
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch top<<<R, 32>>>(x, y, C)
extern "C" __global__ void top(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float m = NAN;
    bool nan = false;
    for (int j = threadIdx.x; j < c; j += 32) {
        nan |= row[j] != row[j];
        m = fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    nan = __any_sync(~0u, nan);
    if (threadIdx.x == 0)
        y[blockIdx.x] = nan ? NAN : m;
}
