// expect: wrong inaccurate
// row: 7
// tries: leaves out the last term of a sum
// task: tasks/matmul.task
//! launch product<<<[ceil_div(N, 16), ceil_div(M, 16)], [16, 16]>>>(a, b, t, y, M, K, N)
extern "C" __global__ void product(const float *a, const float *b, const int *t, float *y, int m,
                                   int inner, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < inner - 1; k++)
        sum += a[i * inner + k] * b[t[k] * n + j];
    y[i * n + j] = sum;
}
