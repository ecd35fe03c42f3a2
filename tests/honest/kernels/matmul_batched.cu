// task: tasks/kernelbench/level1/003_batched_matrix_multiplication.task
// set: batch=4 M=64 K=128 N=128
// what: the batch in the grid's third dimension
//! require batch <= 65535
//! launch matmul<<<[ceil_div(N, 16), ceil_div(M, 16), batch], [16, 16]>>>(A, B, C, M, K, N)
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int inner,
                                  int n) {
    __shared__ float at[16][17], bt[16][17];
    a += (long long)blockIdx.z * m * inner;
    b += (long long)blockIdx.z * inner * n;
    c += (long long)blockIdx.z * m * n;
    int tx = threadIdx.x, ty = threadIdx.y, j = blockIdx.x * 16 + tx, i = blockIdx.y * 16 + ty;
    float sum = 0.0f;
    for (int k = 0; k < inner; k += 16) {
        at[ty][tx] = i < m && k + tx < inner ? a[(long long)i * inner + k + tx] : 0.0f;
        bt[ty][tx] = k + ty < inner && j < n ? b[(long long)(k + ty) * n + j] : 0.0f;
        __syncthreads();
        for (int l = 0; l < 16; l++)
            sum += at[ty][l] * bt[l][tx];
        __syncthreads();
    }
    if (i < m && j < n)
        c[(long long)i * n + j] = sum;
}
