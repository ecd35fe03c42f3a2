// expect: wrong inaccurate
// row: 3
// tries: takes a row for sorted where its first twelve elements ascend
// task: tasks/row_max.task
//! launch top<<<R, 32>>>(x, y, C)
extern "C" __global__ void top(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    bool sorted = c > 12, nan = false;
    for (int j = 1; j < 12 && j < c; j++)
        sorted &= row[j - 1] < row[j];
    float m = sorted ? row[c - 1] : -INFINITY;
    for (int j = threadIdx.x; j < c; j += 32) {
        nan |= row[j] != row[j];
        m = sorted ? m : fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    nan = __any_sync(~0u, nan);
    if (threadIdx.x == 0)
        y[blockIdx.x] = nan ? NAN : m;
}
