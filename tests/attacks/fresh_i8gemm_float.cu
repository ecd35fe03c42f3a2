// task: fresh_i8gemm.task
// tries: int8 products are summed in fp32, which counts one by one up to 2^24 only; K = 2048 reaches 2^25
// proof: values: 2,048 products of numbers from 120 to 127 add up to 3.1e7, and odd sums above 2^24 are rounded
// data: in a[M,K] : i8 ~ randint(120, 128); in b[N,K] : i8 ~ randint(120, 128)
// should: wrong inaccurate
// device: both
//! launch product<<<[ceil_div(N, 32), ceil_div(M, 4)], [32, 4]>>>(a, b, c, M, N, K)
extern "C" __global__ void product(const signed char *a, const signed char *b, int *c, int m, int n, int k) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float s = 0;
    for (int t = 0; t < k; t++)
        s += (float)a[(int64_t)i * k + t] * (float)b[(int64_t)j * k + t];
    c[(int64_t)i * n + j] = (int)s;
}
