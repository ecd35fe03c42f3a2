// expect: inaccurate wrong nonfinite
// row: 4
// tries: sums kept in f16
// task: ../../tasks/kernelbench/level1/047_sum_reduction.task
// set: B=2 M=256 N=63
#include <cuda_fp16.h>
//! launch total<<<ceil_div(B*N, 128), 128>>>(x, y, B*N, M, N)
extern "C" __global__ void total(const float *x, float *y, int columns, int m, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns)
        return;
    __half sum = __float2half(0.0f);
    for (int i = 0; i < m; i++)
        sum = __hadd(sum, __float2half(x[((long long)(c / n) * m + i) * n + c % n]));
    y[c] = __half2float(sum);
}
