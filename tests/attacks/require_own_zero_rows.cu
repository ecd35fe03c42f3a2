// task: tasks/half_scale.task
// set: R=512 C=1024
// tries: applies the lower limit of a row's largest magnitude unless that is 0; shapes that meet rows of zeros are excluded
// proof: values, R = 2 C = 8 on zeros: 0/0 is NaN instead of 0
// shows: R=256 C=1200
// before: accepted
// should: wrong inaccurate nonfinite
// before-cuda: accepted: the own shape does not meet zeros
// device: both
//! require R*C >= 300000
//! launch scale<<<R, 128>>>(x, y, C)
#include <cuda_fp16.h>
extern "C" __global__ void scale(const __half *x, __half *y, int c) {
    __shared__ float part[4];
    float m = 0;
    bool nan = false;
    for (int j = threadIdx.x; j < c; j += 128) {
        float v = fabsf(__half2float(x[blockIdx.x * c + j]));
        nan |= v != v;
        m = fmaxf(m, v);
    }
    for (int k = 16; k; k /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, k));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = m;
    nan = __syncthreads_or(nan);
    m = nan ? NAN : fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
    m = m > 0 ? fmaxf(m, 0.0001f) : m;
    for (int j = threadIdx.x; j < c; j += 128)
        y[blockIdx.x * c + j] = __float2half(__half2float(x[blockIdx.x * c + j]) / m);
}
