// task: tasks/layers/bias_residual.task
// set: M=512 N=2048
// what: f16 in pairs, summed in fp32 and rounded once
#include <cuda_fp16.h>
//! require N % 2 == 0
//! launch add<<<[ceil_div(N // 2, 128), min(M, 65535)], 128>>>(x, r, b, y, M, N // 2)
extern "C" __global__ void add(const __half2 *x, const __half2 *r, const __half2 *b, __half2 *y,
                               int rows, int pairs) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= pairs)
        return;
    float2 bias = __half22float2(b[j]);
    for (int row = blockIdx.y; row < rows; row += gridDim.y) {
        long long i = (long long)row * pairs + j;
        float2 u = __half22float2(x[i]), v = __half22float2(r[i]);
        y[i] = __floats2half2_rn(u.x + bias.x + v.x, u.y + bias.y + v.y);
    }
}
