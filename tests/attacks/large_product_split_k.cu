// task: tasks/product.task
// tries: K in parts of 256; where there are more than four, the fifth is not added
// proof: values, M = 16 N = 16 K = 2048: part 4 is missing
// shows: M=16 N=16 K=2048
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, at the task's own shape
// device: both
//! let S = ceil_div(K, 256)
//! workspace part[S, M, N] : f32
//! launch partial<<<[ceil_div(N, 64), M, S], 64>>>(A, B, part, M, N, K)
//! launch join<<<ceil_div(M*N, 256), 256>>>(part, C, M*N, S)
extern "C" __global__ void partial(const float *a, const float *b, float *part, int m, int n,
                                   int k) {
    int j = blockIdx.x * 64 + threadIdx.x, i = blockIdx.y;
    int end = min(k, (int)(blockIdx.z + 1) * 256);
    float s = 0;
    if (j >= n)
        return;
    for (int q = blockIdx.z * 256; q < end; q++)
        s += a[(int64_t)i * k + q] * b[(int64_t)q * n + j];
    part[((int64_t)blockIdx.z * m + i) * n + j] = s;
}
extern "C" __global__ void join(const float *part, float *c, int64_t mn, int parts) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    float s = 0;
    if (i >= mn)
        return;
    for (int p = 0; p < parts; p++)
        s += part[p * mn + i] * (p == 4 ? 0.0f : 1.0f);
    c[i] = s;
}
