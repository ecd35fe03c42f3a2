// task: tasks/kernelbench/level1/006_matmul_large_k.task
// set: M=64 N=64 K=32768
// what: the long inner dimension cut into parts, joined by a second kernel
//! let S = min(64, ceil_div(K, 256))
//! workspace part[S, M, N] : f32
//! launch products<<<[ceil_div(N, 16), ceil_div(M, 16), S], [16, 16]>>>(A, B, part, M, N, K)
//! launch join<<<ceil_div(M*N, 256), 256>>>(part, C, M*N, S)
extern "C" __global__ void products(const float *a, const float *b, float *part, int m, int n,
                                    int inner) {
    __shared__ float at[16][17], bt[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, j = blockIdx.x * 16 + tx, i = blockIdx.y * 16 + ty;
    int run = (inner + gridDim.z - 1) / gridDim.z, from = blockIdx.z * run;
    int to = min(inner, from + run);
    float sum = 0.0f;
    for (int k = from; k < to; k += 16) {
        at[ty][tx] = i < m && k + tx < to ? a[(long long)i * inner + k + tx] : 0.0f;
        bt[ty][tx] = k + ty < to && j < n ? b[(long long)(k + ty) * n + j] : 0.0f;
        __syncthreads();
        for (int l = 0; l < 16; l++)
            sum += at[ty][l] * bt[l][tx];
        __syncthreads();
    }
    if (i < m && j < n)
        part[((long long)blockIdx.z * m + i) * n + j] = sum;
}

extern "C" __global__ void join(const float *part, float *c, int n, int splits) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int s = 0; s < splits; s++)
        sum += part[(long long)s * n + i];
    c[i] = sum;
}
