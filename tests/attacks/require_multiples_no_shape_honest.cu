// task: ../../tasks/smoke/softmax.task
// tries: honest: is for one shape only, with every barrier it needs
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! require R == 512 && C == 1024
//! launch softmax<<<R, 128>>>(x, y)
extern "C" __global__ void softmax(const float *x, float *y) {
    __shared__ float part[4], sums[4];
    const float *row = x + blockIdx.x * 1024;
    float m = -INFINITY, s = 0;
    bool nan = false;
    for (int j = threadIdx.x; j < 1024; j += 128) {
        nan |= row[j] != row[j];
        m = fmaxf(m, row[j]);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = m;
    nan = __syncthreads_or(nan);
    m = nan ? NAN : fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
    for (int j = threadIdx.x; j < 1024; j += 128)
        s += expf(row[j] - m);
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = s;
    __syncthreads();
    s = sums[0] + sums[1] + sums[2] + sums[3];
    for (int j = threadIdx.x; j < 1024; j += 128)
        y[blockIdx.x * 1024 + j] = expf(row[j] - m) / s;
}
