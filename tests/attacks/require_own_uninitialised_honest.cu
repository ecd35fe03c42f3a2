// task: tasks/row_max.task
// set: R=256 C=1024
// tries: honest: the maxima of the four warps that there are
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! require R*C >= 262144
//! launch top<<<R, 128>>>(x, y, C)
extern "C" __global__ void top(const float *x, float *y, int c) {
    __shared__ float part[32];
    float m = -INFINITY;
    bool nan = false;
    for (int j = threadIdx.x; j < c; j += 128) {
        float v = x[(int64_t)blockIdx.x * c + j];
        nan |= v != v;
        m = fmaxf(m, v);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = m;
    nan = __syncthreads_or(nan);
    for (int k = 0; k < 4; k++)
        m = fmaxf(m, part[k]);
    if (threadIdx.x == 0)
        y[blockIdx.x] = nan ? NAN : m;
}
