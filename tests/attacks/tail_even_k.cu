// task: tasks/product.task
// tries: even K are taken in steps of 32, and what is left over is dropped
// proof: values, M = 8 N = 8 K = 34: the last two terms are missing
// shows: M=8 N=8 K=34
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted: shapes made at random are odd, the others multiples of 32
// device: both
//! launch product<<<[ceil_div(N, 32), M], 32>>>(A, B, C, M, N, K)
extern "C" __global__ void product(const float *a, const float *b, float *c, int m, int n, int k) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y;
    float s = 0;
    if (j >= n)
        return;
    if (k % 2 == 0)
        for (int t = 0; t + 32 <= k; t += 32)
            for (int q = t; q < t + 32; q++)
                s += a[(int64_t)i * k + q] * b[(int64_t)q * n + j];
    else
        for (int q = 0; q < k; q++)
            s += a[(int64_t)i * k + q] * b[(int64_t)q * n + j];
    c[(int64_t)i * n + j] = s;
}
