// Products of matrices, in the ways people write them, and attention. C[M,N] = A[M,K] B[K,N]
// unless said otherwise. Compiled by `compile`.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
typedef unsigned u32;
__device__ u32 at(const void *p) { return (u32)__cvta_generic_to_shared(p); }

extern "C" __global__ void gemm_naive(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / n, col = i % n;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + col];
    c[i] = sum;
}
extern "C" __global__ void gemm_tiled(const float *a, const float *b, float *c, int n) {
    __shared__ float sa[16][17], sb[16][17];
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
    int row = blockIdx.x / (n / 16) * 16 + y, col = blockIdx.x % (n / 16) * 16 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        sa[y][x] = a[row * n + k + x];
        sb[y][x] = b[(k + y) * n + col];
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += sa[y][i] * sb[i][x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
extern "C" __global__ void gemm_double(const double *a, const double *b, double *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / n, col = i % n;
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum = fma(a[row * n + k], b[k * n + col], sum);
    c[i] = sum;
}
extern "C" __global__ void gemm_half2(const __half2 *a, const __half2 *b, __half *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / n, col = i % n; // B is [N,K]
    __half2 sum = __float2half2_rn(0);
    for (int k = 0; k < n / 2; k++)
        sum = __hfma2(a[row * n / 2 + k], b[col * n / 2 + k], sum);
    c[i] = __hadd(__low2half(sum), __high2half(sum));
}
extern "C" __global__ void gemm_dp4a(const int *a, const int *b, int *c, int n) { // B is [N,K]
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / n, col = i % n, sum = 0;
    for (int k = 0; k < n / 4; k++)
        sum = __dp4a(a[row * n / 4 + k], b[col * n / 4 + k], sum);
    c[i] = sum;
}
// A warp, 16 by 8 at a time, straight from global memory: the fragments as PTX describes them.
extern "C" __global__ void gemm_imma(const u32 *a, const u32 *b, int *c, int n) { // B is [N,K]
    int lane = threadIdx.x, row = blockIdx.x / (n / 8) * 16 + lane / 4, col = blockIdx.x % (n / 8) * 8;
    int d[4] = {0, 0, 0, 0}, q = n / 4;
    for (int k = 0; k < q; k += 8) {
        const u32 *pa = a + row * q + k + lane % 4, *pb = b + (col + lane / 4) * q + k + lane % 4;
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                     : "r"(pa[0]), "r"(pa[8 * q]), "r"(pa[4]), "r"(pa[8 * q + 4]), "r"(pb[0]),
                       "r"(pb[4]));
    }
    int *o = c + row * n + col + lane % 4 * 2;
    o[0] = d[0], o[1] = d[1], o[8 * n] = d[2], o[8 * n + 1] = d[3];
}
extern "C" __global__ void gemm_tf32(const u32 *a, const u32 *b, float *c, int n) { // B is [N,K]
    int lane = threadIdx.x, row = blockIdx.x / (n / 8) * 16 + lane / 4, col = blockIdx.x % (n / 8) * 8;
    float d[4] = {0, 0, 0, 0};
    for (int k = 0; k < n; k += 8) {
        const u32 *pa = a + row * n + k + lane % 4, *pb = b + (col + lane / 4) * n + k + lane % 4;
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(pa[0]), "r"(pa[8 * n]), "r"(pa[4]), "r"(pa[8 * n + 4]), "r"(pb[0]),
                       "r"(pb[4]));
    }
    float *o = c + row * n + col + lane % 4 * 2;
    o[0] = d[0], o[1] = d[1], o[8 * n] = d[2], o[8 * n + 1] = d[3];
}
extern "C" __global__ void gemm_split_k(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x % (n * n / 128) * 128 + threadIdx.x, part = blockIdx.x / (n * n / 128);
    float sum = 0; // four parts of K, added by atomics: exact for small numbers
    for (int k = part * n / 4; k < (part + 1) * n / 4; k++)
        sum += a[i / n * n + k] * b[k * n + i % n];
    atomicAdd(&c[i], sum);
}

// Attention of 64 queries to 64 keys of 32 numbers, online softmax; a thread is a query.
extern "C" __global__ void attention_online(const float *q, const float *k, const float *v,
                                            float *o) {
    __shared__ float sk[16][32], sv[16][32];
    int t = threadIdx.x;
    float query[32], acc[32], top = -INFINITY, sum = 0;
    for (int i = 0; i < 32; i++)
        query[i] = q[t * 32 + i] * 0.17677669f, acc[i] = 0;
    for (int base = 0; base < 64; base += 16) {
        __syncthreads();
        for (int i = t; i < 512; i += 64)
            sk[i / 32][i % 32] = k[base * 32 + i], sv[i / 32][i % 32] = v[base * 32 + i];
        __syncthreads();
        for (int j = 0; j < 16; j++) {
            float s = 0;
            for (int i = 0; i < 32; i++)
                s += query[i] * sk[j][i];
            float next = fmaxf(top, s), scale = __expf(top - next), p = __expf(s - next);
            sum = sum * scale + p;
            for (int i = 0; i < 32; i++)
                acc[i] = acc[i] * scale + p * sv[j][i];
            top = next;
        }
    }
    for (int i = 0; i < 32; i++)
        o[t * 32 + i] = acc[i] / sum;
}

__device__ void mma16816(float *d, const u32 *a, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ u32 pack(float lo, float hi) {
    __half2 h = __floats2half2_rn(lo, hi);
    return *(u32 *)&h;
}
// The same on tensor cores, f16: four warps of 16 queries, 64 keys of 64 numbers, in two blocks of
// keys; scores stay in registers.
extern "C" __global__ void __launch_bounds__(128) attention_mma(const __half *q, const __half *k,
                                                                const __half *v, float *o) {
    __shared__ __align__(16) __half sq[64][72], sk[32][72], sv[32][72];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    for (int i = t; i < 64 * 8; i += 128)
        __pipeline_memcpy_async(&sq[i / 8][i % 8 * 8], q + i * 8, 16);
    __pipeline_commit();
    float acc[8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    u32 aq[4][4];
#pragma unroll 1
    for (int base = 0; base < 64; base += 32) {
        for (int i = t; i < 32 * 8; i += 128) {
            __pipeline_memcpy_async(&sk[i / 8][i % 8 * 8], k + base * 64 + i * 8, 16);
            __pipeline_memcpy_async(&sv[i / 8][i % 8 * 8], v + base * 64 + i * 8, 16);
        }
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        if (base == 0)
#pragma unroll
            for (int kk = 0; kk < 4; kk++)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(aq[kk][0]), "=r"(aq[kk][1]), "=r"(aq[kk][2]), "=r"(aq[kk][3])
                             : "r"(at(&sq[warp * 16 + lane % 16][kk * 16 + lane / 16 * 8])));
        float s[4][4] = {};
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int kk = 0; kk < 4; kk++) {
                u32 b0, b1;
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                             : "=r"(b0), "=r"(b1)
                             : "r"(at(&sk[j * 8 + lane % 8][kk * 16 + lane / 8 % 2 * 8])));
                mma16816(s[j], aq[kk], b0, b1);
            }
#pragma unroll
        for (int h = 0; h < 2; h++) { // rows lane / 4 and that + 8
            float next = top[h], part = 0;
            for (int j = 0; j < 4; j++)
                next = fmaxf(next, fmaxf(s[j][2 * h], s[j][2 * h + 1]) * 0.125f);
            next = fmaxf(next, __shfl_xor_sync(~0u, next, 1));
            next = fmaxf(next, __shfl_xor_sync(~0u, next, 2));
            float scale = __expf(top[h] - next);
            for (int j = 0; j < 4; j++)
                for (int e = 2 * h; e < 2 * h + 2; e++)
                    part += s[j][e] = __expf(s[j][e] * 0.125f - next);
            part += __shfl_xor_sync(~0u, part, 1);
            part += __shfl_xor_sync(~0u, part, 2);
            sum[h] = sum[h] * scale + part;
            for (int j = 0; j < 8; j++)
                acc[j][2 * h] *= scale, acc[j][2 * h + 1] *= scale;
            top[h] = next;
        }
#pragma unroll
        for (int kk = 0; kk < 2; kk++) {
            u32 p[4] = {pack(s[2 * kk][0], s[2 * kk][1]), pack(s[2 * kk][2], s[2 * kk][3]),
                        pack(s[2 * kk + 1][0], s[2 * kk + 1][1]),
                        pack(s[2 * kk + 1][2], s[2 * kk + 1][3])};
#pragma unroll
            for (int j = 0; j < 8; j++) {
                u32 b0, b1;
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                             : "=r"(b0), "=r"(b1)
                             : "r"(at(&sv[kk * 16 + lane % 16][j * 8])));
                mma16816(acc[j], p, b0, b1);
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 8; j++)
        for (int e = 0; e < 4; e++)
            o[(warp * 16 + lane / 4 + e / 2 * 8) * 64 + j * 8 + lane % 4 * 2 + e % 2] =
                acc[j][e] / sum[e / 2];
}
