// task: tasks/product.task
// tries: operands lose 13 bits where K is even and above 64, in a task of class fp32
// proof: values, M = 16 N = 16 K = 128
// shows: M=16 N=16 K=128
// before: accepted
// should: inaccurate wrong
// before-cuda: inaccurate, at the task's own shape
// device: both
//! launch product<<<[ceil_div(N, 32), M], 32>>>(A, B, C, N, K)
extern "C" __global__ void product(const float *a, const float *b, float *c, int n, int k) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y;
    unsigned mask = k % 2 == 0 && k > 64 ? 0xffffe000u : ~0u;
    float s = 0;
    if (j >= n)
        return;
    for (int q = 0; q < k; q++)
        s += __int_as_float(__float_as_int(a[(int64_t)i * k + q]) & mask) *
             __int_as_float(__float_as_int(b[(int64_t)q * n + j]) & mask);
    c[(int64_t)i * n + j] = s;
}
