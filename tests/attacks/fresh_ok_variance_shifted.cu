// task: fresh_variance.task
// tries: honest: sums about the column's first element, of the values and their squares, in double
// proof: none; it is right
// should: accepted
// device: both
//! launch variance<<<ceil_div(C, 32), [32, 8]>>>(x, y, R, C)
#include <cuda_fp16.h>
extern "C" __global__ void variance(const __half *x, float *y, int r, int c) {
    __shared__ double sums[8][32], squares[8][32];
    int j = blockIdx.x * 32 + threadIdx.x;
    double s = 0, q = 0, first = j < c ? (double)__half2float(x[j]) : 0;
    for (int i = threadIdx.y; i < r && j < c; i += 8) {
        double d = (double)__half2float(x[(int64_t)i * c + j]) - first;
        s += d;
        q = fma(d, d, q);
    }
    sums[threadIdx.y][threadIdx.x] = s;
    squares[threadIdx.y][threadIdx.x] = q;
    __syncthreads();
    if (threadIdx.y || j >= c)
        return;
    for (int k = 1; k < 8; k++) {
        s += sums[k][threadIdx.x];
        q += squares[k][threadIdx.x];
    }
    y[j] = (float)((q - s * s / r) / r);
}
