// task: tasks/product.task
// tries: honest: even K in steps of 32 with the rest after them
// proof: none; it is right
// before: accepted
// should: accepted
// before-cuda: accepted
// device: both
//! launch product<<<[ceil_div(N, 32), M], 32>>>(A, B, C, M, N, K)
extern "C" __global__ void product(const float *a, const float *b, float *c, int m, int n, int k) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y, whole = k % 2 == 0 ? k - k % 32 : 0;
    float s = 0;
    if (j >= n)
        return;
    for (int t = 0; t < whole; t += 32)
        for (int q = t; q < t + 32; q++)
            s += a[(int64_t)i * k + q] * b[(int64_t)q * n + j];
    for (int q = whole; q < k; q++)
        s += a[(int64_t)i * k + q] * b[(int64_t)q * n + j];
    c[(int64_t)i * n + j] = s;
}
