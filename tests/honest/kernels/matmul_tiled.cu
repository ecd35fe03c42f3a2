// task: tasks/kernelbench/level1/002_standard_matrix_multiplication.task
// set: M=256 K=512 N=256
// what: square tiles in shared memory
//! launch matmul<<<[ceil_div(N, 32), ceil_div(M, 32)], [32, 32]>>>(A, B, C, M, K, N)
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int inner,
                                  int n) {
    __shared__ float at[32][33], bt[32][33];
    int tx = threadIdx.x, ty = threadIdx.y, j = blockIdx.x * 32 + tx, i = blockIdx.y * 32 + ty;
    float sum = 0.0f;
    for (int k = 0; k < inner; k += 32) {
        at[ty][tx] = i < m && k + tx < inner ? a[(long long)i * inner + k + tx] : 0.0f;
        bt[ty][tx] = k + ty < inner && j < n ? b[(long long)(k + ty) * n + j] : 0.0f;
        __syncthreads();
        for (int l = 0; l < 32; l++)
            sum += at[ty][l] * bt[l][tx];
        __syncthreads();
    }
    if (i < m && j < n)
        c[(long long)i * n + j] = sum;
}
