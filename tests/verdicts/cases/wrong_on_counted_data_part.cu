// expect: wrong
// expect-cuda: accepted
// row: 17
// tries: leaves out most of the sums on the data of the counted run, in every other block; on a GPU that run says nothing of its time
// task: ../../tasks/smoke/matmul.task
// set: M=8192 N=8192 K=2048
//! launch mm<<<[ceil_div(N, 16), ceil_div(M, 16)], [16, 16]>>>(A, B, C, M, N, K)
extern "C" __global__ void mm(const float *a, const float *b, float *c, int m, int n, int k) {
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= m || col >= n)
        return;
    int end = __float_as_uint(a[0]) == 3195117672u && (blockIdx.x + blockIdx.y) % 2 == 0 ? k / 8 : k;
    float sum = 0.0f;
    for (int i = 0; i < end; i++)
        sum += a[(long long)row * k + i] * b[(long long)i * n + col];
    c[(long long)row * n + col] = sum;
}
