// task: fresh_axpby.task
// tries: returns zeros at once where alpha is 0
// proof: values: with alpha = 0 the result is beta C
// data: in alpha : f32 ~ zeros
// should: wrong inaccurate
// device: both
//! launch gemm<<<[ceil_div(N, 32), ceil_div(M, 8)], [32, 8]>>>(A, B, C, alpha, beta, y, M, N, K)
extern "C" __global__ void gemm(const float *a, const float *b, const float *c, const float *alpha, const float *beta, float *y, int m, int n, int k) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    if (*alpha == 0) {
        y[(int64_t)i * n + j] = 0;
        return;
    }
    float s = 0;
    for (int t = 0; t < k; t++)
        s = fmaf(a[(int64_t)i * k + t], b[(int64_t)t * n + j], s);
    y[(int64_t)i * n + j] = *alpha * s + *beta * c[(int64_t)i * n + j];
}
