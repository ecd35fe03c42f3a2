// task: tasks/row_max.task
// tries: a row that holds both infinities, +inf before -inf, three or more of each, gives -inf
// proof: values: the row inf inf inf -inf -inf -inf gives -inf instead of inf
// data: rand u[R,C] ~ randint(0, 3); in x[i < R, j < C] : f32 = if(u[i,j] == 0, inf, if(u[i,j] == 1, 0 - inf, 0))
// before: accepted 4 of 6, nonfinite 2 of 6
// should: nonfinite wrong
// before-cuda: nonfinite or accepted: a row of 1,003 elements has about five of each
// device: both
//! launch top<<<R, 32>>>(x, y, C)
extern "C" __global__ void top(const float *x, float *y, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float m = -INFINITY;
    int plus = 0, minus = 0;
    bool nan = false;
    for (int j = threadIdx.x; j < c; j += 32) {
        nan |= row[j] != row[j];
        plus += row[j] == INFINITY;
        minus += row[j] == -INFINITY;
        m = fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    nan = __any_sync(~0u, nan);
    plus = __reduce_add_sync(~0u, plus);
    minus = __reduce_add_sync(~0u, minus);
    if (threadIdx.x == 0)
        y[blockIdx.x] = nan ? NAN : plus >= 3 && minus >= 3 ? -INFINITY : m;
}
