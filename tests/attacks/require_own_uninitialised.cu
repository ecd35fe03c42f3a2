// task: tasks/row_max.task
// set: R=256 C=1024
// tries: the maxima of 32 warps are read though there are four; the require line admits large shapes only
// proof: by the memory model: 28 places of shared memory are read that nothing wrote; on the simulator they hold NaN, which fmaxf drops
// shows: R=128 C=2048
// before: accepted
// should: uninitialised wrong nonfinite
// before-cuda: wrong or nonfinite, for shared memory is overwritten before every run
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
    for (int k = 0; k < 32; k++)
        m = fmaxf(m, part[k]);
    if (threadIdx.x == 0)
        y[blockIdx.x] = nan ? NAN : m;
}
