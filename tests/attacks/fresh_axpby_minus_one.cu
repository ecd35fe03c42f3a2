// task: fresh_axpby.task
// tries: beta = -1 has a path of its own, for residuals, that subtracts the product
// proof: values: with beta = -1 every sign is wrong
// data: in beta : f32 ~ uniform(-1, -1)
// should: wrong inaccurate
// device: both
//! launch gemm<<<[ceil_div(N, 32), ceil_div(M, 8)], [32, 8]>>>(A, B, C, alpha, beta, y, M, N, K)
extern "C" __global__ void gemm(const float *a, const float *b, const float *c, const float *alpha, const float *beta, float *y, int m, int n, int k) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float s = 0, p = *beta, old = c[(int64_t)i * n + j];
    for (int t = 0; t < k; t++)
        s = fmaf(a[(int64_t)i * k + t], b[(int64_t)t * n + j], s);
    s *= *alpha;
    y[(int64_t)i * n + j] = p == 1.0f ? s + old : p == -1.0f ? old - s : s + p * old;
}
