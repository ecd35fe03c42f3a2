// task: ../../tasks/layers/bias_residual.task
// tries: both additions in f16: the first is rounded before the second takes most of it away
// proof: values: x = 1000.5, b = 0.3, r = -1000
// data: in x[M,N] : f16 ~ uniform(1000, 1010); in r[M,N] : f16 ~ uniform(-1010, -1000)
// should: wrong inaccurate
// device: both
//! launch add<<<ceil_div(M*N, 256), 256>>>(x, r, b, y, N, M*N)
#include <cuda_fp16.h>
extern "C" __global__ void add(const __half *x, const __half *r, const __half *b, __half *y, int n, int64_t total) {
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (i < total)
        y[i] = __hadd(__hadd(x[i], b[i % n]), r[i]);
}
