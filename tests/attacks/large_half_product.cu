// task: tasks/product.task
// tries: sums of a long K are kept in f16 between steps of 512
// proof: values, M = 16 N = 16 K = 2048
// shows: M=16 N=16 K=2048
// before: accepted
// should: inaccurate wrong nonfinite
// before-cuda: inaccurate or nonfinite, at the task's own shape
// device: both
//! launch product<<<[ceil_div(N, 32), M], 32>>>(A, B, C, N, K)
#include <cuda_fp16.h>
extern "C" __global__ void product(const float *a, const float *b, float *c, int n, int k) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y;
    float s = 0;
    if (j >= n)
        return;
    for (int q = 0; q < k; q++) {
        s += a[(int64_t)i * k + q] * b[(int64_t)q * n + j];
        if (k > 1024 && q % 512 == 511)
            s = __half2float(__float2half(s));
    }
    c[(int64_t)i * n + j] = s;
}
