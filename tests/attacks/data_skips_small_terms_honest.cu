// task: ../../tasks/layers/log_sum_exp.task
// tries: honest: leaves out terms whose exponential is zero in fp32
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch lse<<<B, 32>>>(x, y, D)
extern "C" __global__ void lse(const float *x, float *y, int d) {
    const float *row = x + (int64_t)blockIdx.x * d;
    float m = -INFINITY, s = 0;
    bool nan = false;
    for (int j = threadIdx.x; j < d; j += 32) {
        nan |= row[j] != row[j];
        m = fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    m = __any_sync(~0u, nan) ? NAN : m;
    for (int j = threadIdx.x; j < d; j += 32)
        s += row[j] - m < -110 ? 0 : expf(row[j] - m);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0)
        y[blockIdx.x] = m + logf(s);
}
