// task: ../../tasks/smoke/matmul.task
// tries: products in f16 with one scale for a matrix, by its largest magnitude: rows that are small beside it lose their digits
// proof: values: a matrix with one row of 1e6 and others of 1
// data: rand u[M,K] ~ normal(0, 1); in A[i < M, k < K] : f32 = if(i == 0, 1e6 * u[i,k], 0.01 * u[i,k])
// should: inaccurate wrong
// device: both
//! workspace top[1] : i32
//! memset top = 0
//! launch largest<<<1, 1024>>>(A, top, M*K)
//! launch product<<<[ceil_div(N, 32), M], 32>>>(A, B, C, top, N, K)
#include <cuda_fp16.h>
extern "C" __global__ void largest(const float *a, int *top, int64_t n) {
    int m = 0;
    for (int64_t i = threadIdx.x; i < n; i += 1024)
        if (fabsf(a[i]) <= FLT_MAX)
            m = max(m, __float_as_int(fabsf(a[i])));
    atomicMax(top, m);
}
extern "C" __global__ void product(const float *a, const float *b, float *c, const int *top, int n, int k) {
    int j = blockIdx.x * 32 + threadIdx.x, e;
    if (j >= n)
        return;
    frexpf(__int_as_float(*top), &e);
    float s = 0;
    for (int t = 0; t < k; t++) {
        float v = a[(int64_t)blockIdx.y * k + t];
        float r = isfinite(v) ? ldexpf(__half2float(__float2half(ldexpf(v, 15 - e))), e - 15) : v;
        s = fmaf(r, b[(int64_t)t * n + j], s);
    }
    c[(int64_t)blockIdx.y * n + j] = s;
}
