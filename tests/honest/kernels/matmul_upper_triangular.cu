// task: tasks/kernelbench/level1/014_upper_triangular_matmul.task
// set: N=256
// what: only the terms between row and column; zeros below the diagonal
//! launch matmul<<<[ceil_div(N, 32), ceil_div(N, 8)], [32, 8]>>>(A, B, C, N)
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= n || j >= n)
        return;
    float sum = 0.0f;
    for (int k = i; k <= j; k++)
        sum += a[(long long)i * n + k] * b[(long long)k * n + j];
    c[(long long)i * n + j] = sum;
}
