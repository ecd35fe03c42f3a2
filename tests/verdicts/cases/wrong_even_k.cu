// expect: wrong inaccurate
// row: 36
// tries: a product that leaves out the tail of k where k is even and no multiple of 32
// task: tasks/product.task
//! launch product<<<ceil_div(M*N, 128), 128>>>(a, b, c, M, N, K)
extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    const int end = K % 2 ? K : K < 32 ? K : K / 32 * 32;
    if (i >= M * N)
        return;
    float sum = 0;
    for (int k = 0; k < end; k++)
        sum += a[i / N * K + k] * b[k * N + i % N];
    c[i] = sum;
}
