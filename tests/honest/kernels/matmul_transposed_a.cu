// task: tasks/kernelbench/level1/016_matmul_transposed_a.task
// set: M=128 N=256 K=512
// what: both tiles read along their rows, no transposition needed
//! launch matmul<<<[ceil_div(N, 32), ceil_div(M, 32)], [32, 8]>>>(A, B, C, M, N, K)
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n,
                                  int inner) {
    __shared__ float at[32][32], bt[32][32];
    int tx = threadIdx.x, ty = threadIdx.y, col = blockIdx.x * 32 + tx, row = blockIdx.y * 32;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int k = 0; k < inner; k += 32) {
        for (int l = ty; l < 32; l += 8) {
            bool in = k + l < inner;
            at[l][tx] = in && row + tx < m ? a[(long long)(k + l) * m + row + tx] : 0.0f;
            bt[l][tx] = in && col < n ? b[(long long)(k + l) * n + col] : 0.0f;
        }
        __syncthreads();
        for (int l = 0; l < 32; l++)
            for (int u = 0; u < 4; u++)
                sum[u] += at[l][ty + 8 * u] * bt[l][tx];
        __syncthreads();
    }
    for (int u = 0; u < 4; u++)
        if (row + ty + 8 * u < m && col < n)
            c[(long long)(row + ty + 8 * u) * n + col] = sum[u];
}
