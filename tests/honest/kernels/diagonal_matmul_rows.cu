// task: tasks/kernelbench/level1/012_diagonal_matmul.task
// set: N=1024 M=1024
// what: every row scaled, the factor read once a block
//! launch scale<<<N, 256>>>(A, B, C, M)
extern "C" __global__ void scale(const float *a, const float *b, float *c, int cols) {
    __shared__ float factor;
    if (threadIdx.x == 0)
        factor = a[blockIdx.x];
    __syncthreads();
    long long base = (long long)blockIdx.x * cols;
    for (int j = threadIdx.x; j < cols; j += blockDim.x)
        c[base + j] = factor * b[base + j];
}
