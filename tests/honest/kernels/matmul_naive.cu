// task: tasks/kernelbench/level1/001_square_matrix_multiplication.task
// set: N=256
// what: a thread an element
//! launch matmul<<<[ceil_div(N, 16), ceil_div(N, 16)], [16, 16]>>>(A, B, C, N)
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n) {
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= n || j >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += a[i * n + k] * b[k * n + j];
    c[i * n + j] = sum;
}
