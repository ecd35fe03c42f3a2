// task: ../../tasks/kernelbench/level1/051_argmax_reduction.task
// tries: values are compared by ordered bits together with their places, where -0 comes below +0
// proof: values: of -0, +0 and nothing larger the second is taken
// data: rand u[B,M,N] ~ randint(0, 3); in x[b < B, m < M, n < N] : f32 = if(u[b,m,n] == 0, 0 - 1, if(u[b,m,n] == 1, 0 * (0 - 1), 0))
// should: wrong inaccurate
// device: both
//! launch place<<<[ceil_div(N, 32), B], 32>>>(x, y, M, N)
__device__ unsigned long long key(float v, int at) {
    unsigned b = __float_as_uint(v);
    b = v != v ? ~0u : b >> 31 ? ~b : b | 0x80000000u;
    return (unsigned long long)b << 32 | (0x7fffffff - at);
}
extern "C" __global__ void place(const float *x, long long *y, int m, int n) {
    int j = blockIdx.x * 32 + threadIdx.x;
    if (j >= n)
        return;
    unsigned long long best = 0;
    for (int i = 0; i < m; i++) {
        unsigned long long k = key(x[((int64_t)blockIdx.y * m + i) * n + j], i);
        best = k > best ? k : best;
    }
    y[(int64_t)blockIdx.y * n + j] = 0x7fffffff - (int)(best & 0xffffffffu);
}
