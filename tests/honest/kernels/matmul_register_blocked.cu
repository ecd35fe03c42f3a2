// task: tasks/kernelbench/level1/002_standard_matrix_multiplication.task
// set: M=256 K=512 N=256
// what: 64x64 tiles, 4x4 elements a thread in registers
//! launch matmul<<<[ceil_div(N, 64), ceil_div(M, 64)], 256>>>(A, B, C, M, K, N)
extern "C" __global__ void __launch_bounds__(256)
    matmul(const float *a, const float *b, float *c, int m, int inner, int n) {
    __shared__ float at[16][65], bt[16][64];
    int tid = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 64;
    int tx = tid % 16 * 4, ty = tid / 16 * 4;
    float sum[4][4] = {};
    for (int k = 0; k < inner; k += 16) {
        for (int e = tid; e < 64 * 16; e += 256) {
            int i = e / 16, l = e % 16;
            bool in = row + i < m && k + l < inner;
            at[l][i] = in ? a[(long long)(row + i) * inner + k + l] : 0.0f;
        }
        for (int e = tid; e < 16 * 64; e += 256) {
            int l = e / 64, j = e % 64;
            bool in = k + l < inner && col + j < n;
            bt[l][j] = in ? b[(long long)(k + l) * n + col + j] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int l = 0; l < 16; l++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i][j] += at[l][ty + i] * bt[l][tx + j];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (row + ty + i < m && col + tx + j < n)
                c[(long long)(row + ty + i) * n + col + tx + j] = sum[i][j];
}
