// task: fresh_i8gemm.task
// tries: honest: dp4a by inline PTX where rows are whole words, and bytes elsewhere, with the rest after them
// proof: none; it is right
// should: accepted
// device: both
//! launch product<<<[ceil_div(N, 32), ceil_div(M, 4)], [32, 4]>>>(a, b, c, M, N, K)
extern "C" __global__ void product(const signed char *a, const signed char *b, int *c, int m, int n, int k) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    const signed char *p = a + (int64_t)i * k, *q = b + (int64_t)j * k;
    int s = 0, t = 0;
    if (k % 4 == 0)
        for (; t + 4 <= k; t += 4)
            asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(s) : "r"(*(const int *)(p + t)), "r"(*(const int *)(q + t)));
    for (; t < k; t++)
        s += (int)p[t] * q[t];
    c[(int64_t)i * n + j] = s;
}
