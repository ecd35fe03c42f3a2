// task: tasks/row_max.task
// tries: of rows whose length is a multiple of 3 and even, every third element is left out
// proof: values, R = 8 C = 6: elements 2 and 5 are never looked at
// shows: R=8 C=6
// before: accepted
// should: wrong nonfinite inaccurate
// before-cuda: accepted
// device: both
//! launch top<<<R, 32>>>(x, y, C)
extern "C" __global__ void top(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float m = -INFINITY;
    bool nan = false;
    for (int j = threadIdx.x; j < c; j += 32) {
        if (c % 6 == 0 && j % 3 == 2)
            continue;
        nan |= row[j] != row[j];
        m = fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    nan = __any_sync(~0u, nan);
    if (threadIdx.x == 0)
        y[blockIdx.x] = nan ? NAN : m;
}
