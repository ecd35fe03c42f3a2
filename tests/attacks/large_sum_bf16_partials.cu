// task: tasks/row_sum.task
// tries: partial sums are kept as bf16 from the ninth round of a row on
// proof: values, R = 8 C = 8192 on signed data: 8 bits of every partial sum are left
// shows: R=8 C=8192
// before: accepted
// should: inaccurate wrong
// before-cuda: inaccurate, at the task's own shape
// device: both
//! launch sum<<<R, 128>>>(x, y, C)
#include <cuda_bf16.h>
extern "C" __global__ void sum(const float *x, float *y, int c) {
    __shared__ float part[4];
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 128) {
        s += x[(int64_t)blockIdx.x * c + j];
        if (j >= 1024)
            s = __bfloat162float(__float2bfloat16(s));
    }
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
