// task: fresh_i8gemm.task
// tries: subtracts where a factor is negative, by the magnitude in a signed byte: that of -128 is -128
// proof: values: -128 times 1 gives 128
// data: in a[M,K] : i8 ~ randint(-128, -126)
// should: wrong inaccurate
// device: both
//! launch product<<<[ceil_div(N, 32), ceil_div(M, 4)], [32, 4]>>>(a, b, c, M, N, K)
extern "C" __global__ void product(const signed char *a, const signed char *b, int *c, int m, int n, int k) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    int s = 0;
    for (int t = 0; t < k; t++) {
        signed char p = a[(int64_t)i * k + t], q = b[(int64_t)j * k + t];
        signed char size = (signed char)(p < 0 ? -p : p);
        s += p < 0 ? -(int)size * q : (int)size * q;
    }
    c[(int64_t)i * n + j] = s;
}
