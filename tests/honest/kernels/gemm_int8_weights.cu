// task: tasks/layers/gemm_int8_weights.task
// set: M=32 N=256 K=1024
// what: int8 weights widened on the way to shared memory, sums in fp32
#include <cuda_fp16.h>
//! launch gemm<<<[ceil_div(N, 16), ceil_div(M, 16)], [16, 16]>>>(x, w, scale, y, M, N, K)
extern "C" __global__ void gemm(const __half *x, const signed char *w, const float *scale,
                                __half *y, int m, int n, int inner) {
    __shared__ float xt[16][17], wt[16][17];
    int tx = threadIdx.x, ty = threadIdx.y, j = blockIdx.x * 16 + tx, i = blockIdx.y * 16 + ty;
    int other = blockIdx.x * 16 + ty;
    float sum = 0.0f;
    for (int k = 0; k < inner; k += 16) {
        bool in = k + tx < inner;
        xt[ty][tx] = in && i < m ? __half2float(x[(long long)i * inner + k + tx]) : 0.0f;
        wt[ty][tx] = in && other < n ? (float)w[(long long)other * inner + k + tx] : 0.0f;
        __syncthreads();
        for (int l = 0; l < 16; l++)
            sum += xt[ty][l] * wt[tx][l];
        __syncthreads();
    }
    if (i < m && j < n)
        y[(long long)i * n + j] = __float2half_rn(sum * scale[j]);
}
