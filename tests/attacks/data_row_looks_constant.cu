// task: tasks/row_max.task
// tries: takes a row for constant where its first, middle and last elements are one number that is not zero
// proof: values: the row 1 5 1 5 1 gives 1 instead of 5
// data: rand u[R,C] ~ randint(1, 3); in x[R,C] : f32 = u[i,j]
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted
// device: both
//! launch top<<<R, 32>>>(x, y, C)
extern "C" __global__ void top(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float m = -INFINITY, a = row[0];
    bool nan = false;
    bool same = a == row[c / 2] && a == row[c - 1] && a != 0;
    for (int j = threadIdx.x; j < (same ? 1 : c); j += 32) {
        nan |= row[j] != row[j];
        m = fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    nan = __any_sync(~0u, nan);
    if (threadIdx.x == 0)
        y[blockIdx.x] = nan ? NAN : m;
}
