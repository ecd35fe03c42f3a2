// expect: wrong inaccurate
// row: 3
// tries: leaves out terms of a sum of exponentials that are exp(-12) of the largest and smaller
// task: ../../tasks/layers/log_sum_exp.task
//! launch lse<<<B, 128>>>(x, y, D)
extern "C" __global__ void lse(const float *x, float *y, int d) {
    __shared__ float part[4], sums[4];
    const float *row = x + (int64_t)blockIdx.x * d;
    float m = -INFINITY, s = 0;
    bool nan = false;
    for (int j = threadIdx.x; j < d; j += 128) {
        nan |= row[j] != row[j];
        m = fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = m;
    nan = __syncthreads_or(nan);
    m = nan ? NAN : fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
    for (int j = threadIdx.x; j < d; j += 128)
        s += row[j] - m < -12 ? 0 : expf(row[j] - m);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = m + logf(sums[0] + sums[1] + sums[2] + sums[3]);
}
