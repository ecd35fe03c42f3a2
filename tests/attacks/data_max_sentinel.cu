// task: tasks/row_max.task
// tries: the maximum begins at -FLT_MAX
// proof: values: a row of -inf gives -3.4e38 instead of -inf
// data: rand u[R,C] ~ randint(0, 2); in x[i < R, j < C] : f32 = if(i % 2 == 0, 0 - inf, u[i,j])
// before: accepted
// should: nonfinite wrong
// before-cuda: nonfinite where a made row of a few elements is all -inf, accepted otherwise
// device: both
//! launch top<<<R, 32>>>(x, y, C)
extern "C" __global__ void top(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float m = -FLT_MAX;
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
