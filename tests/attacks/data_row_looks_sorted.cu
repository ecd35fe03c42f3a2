// task: tasks/row_max.task
// set: R=256 C=1024
// tries: takes a row for sorted where its first twelve elements ascend
// proof: values: the row 1 2 … 12 0 has the maximum 12; the kernel says 0
// data: rand u[R,C] ~ normal(0, 1); in x[i < R, j < C] : f32 = if(j < 12, j, 0 - abs(u[i,j]))
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted: twelve elements in a row ascend once in 5e8 rows
// device: both
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
