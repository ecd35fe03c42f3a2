// Whole kernels as people write them: elementwise, reductions, scans, and what moves data about.
// Compiled by `compile`.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
namespace cg = cooperative_groups;
typedef unsigned u32;
typedef unsigned long long u64;

__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Elementwise.
extern "C" __global__ void axpy(const float *x, float *y, int n) {
    for (int i = index(); i < n; i += gridDim.x * blockDim.x)
        y[i] = 1.25f * x[i] + y[i];
}
extern "C" __global__ void axpy4(const float4 *x, float4 *y, int n) {
    int i = index();
    if (i * 4 + 3 < n) {
        float4 a = __ldg(x + i), b = y[i];
        y[i] = make_float4(a.x - b.x, a.y * b.y, fmaf(a.z, b.z, 1), fmaxf(a.w, b.w));
    } else {
        for (int k = i * 4; k < n; k++)
            ((float *)y)[k] += ((const float *)x)[k];
    }
}
extern "C" __global__ void gelu_erf(const float *x, float *y, int n) {
    int i = index();
    if (i < n)
        y[i] = 0.5f * x[i] * (1 + erff(x[i] * 0.70710678f));
}
extern "C" __global__ void silu_fast(const float *x, float *y, int n) {
    int i = index();
    if (i < n)
        y[i] = __fdividef(x[i], 1 + __expf(-x[i]));
}
extern "C" __global__ void functions_whole(const float *x, float *y, int n) {
    int i = index();
    if (i < n) {
        float v = fabsf(x[i]) + 0.125f;
        y[i] = logf(v) + sqrtf(v) * expf(-v) + powf(v, 0.75f) + tanhf(v) + sinf(v) + cosf(v);
    }
}
extern "C" __global__ void bias_half2(const __half2 *x, const __half2 *bias, __half2 *y, int n) {
    int i = index();
    if (i < n)
        y[i] = __hmax2(__hfma2(x[i], __float2half2_rn(0.5f), bias[i & 31]), __float2half2_rn(0));
}
extern "C" __global__ void scale_bf16(const __nv_bfloat162 *x, __nv_bfloat162 *y, int n) {
    int i = index();
    if (i < n)
        // Without .rn the driver makes one fma of the two.
        y[i] = __hadd2_rn(__hmul2_rn(x[i], __float2bfloat162_rn(1.5f)), x[i ^ 1]);
}
extern "C" __global__ void quantise(const float2 *x, unsigned short *y, float *back, int n) {
    int i = index();
    if (i < n) {
        unsigned short q = __nv_cvt_float2_to_fp8x2(x[i], __NV_SATFINITE, __NV_E4M3);
        y[i] = q;
        __half2_raw h = __nv_cvt_fp8x2_to_halfraw2(q, __NV_E4M3);
        float2 f = __half22float2(*(__half2 *)&h);
        back[2 * i] = f.x;
        back[2 * i + 1] = f.y;
    }
}
extern "C" __global__ void random_bits(u32 *y, int n) { // Philox
    int i = index();
    u32 c[4] = {(u32)i, 7, 11, 13}, k0 = 0xdeadbeef, k1 = 0x12345678;
    for (int r = 0; r < 10; r++) {
        u64 p = (u64)0xd2511f53u * c[0], q = (u64)0xcd9e8d57u * c[2];
        u32 a = (u32)(q >> 32) ^ c[1] ^ k0, b = (u32)(p >> 32) ^ c[3] ^ k1;
        c[1] = (u32)q, c[3] = (u32)p, c[0] = a, c[2] = b;
        k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
    }
    if (i < n)
        y[i] = c[0] ^ c[1] ^ c[2] ^ c[3];
}

// Reductions.
__device__ float warp_sum(float v) {
    for (int d = 16; d; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    return v;
}
__device__ float warp_max(float v) {
    for (int d = 16; d; d /= 2)
        v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    return v;
}
template <bool MAX> __device__ float block_reduce(float v) {
    __shared__ float part[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = MAX ? warp_max(v) : warp_sum(v);
    __syncthreads();
    if (lane == 0)
        part[warp] = v;
    __syncthreads();
    v = lane < warps ? part[lane] : MAX ? -INFINITY : 0;
    return MAX ? warp_max(v) : warp_sum(v);
}
extern "C" __global__ void sum_rows(const float *x, float *y, int n) {
    float v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        v += x[blockIdx.x * n + i];
    v = block_reduce<false>(v);
    if (threadIdx.x == 0)
        y[blockIdx.x] = v;
}
extern "C" __global__ void sum_tree(const float *x, float *y) {
    __shared__ float s[256];
    s[threadIdx.x] = x[index()];
    for (int k = 128; k; k /= 2) {
        __syncthreads();
        if (threadIdx.x < k)
            s[threadIdx.x] += s[threadIdx.x + k];
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = s[0];
}
extern "C" __global__ void sum_integers(const u32 *x, u32 *y, int n) {
    u32 v = 0;
    for (int i = index(); i < n; i += gridDim.x * blockDim.x)
        v += x[i];
    v = __reduce_add_sync(~0u, v);
    if (threadIdx.x % 32 == 0)
        atomicAdd(y, v);
}
extern "C" __global__ void sum_doubles(const double *x, double *y, int n) {
    double v = 0;
    for (int i = threadIdx.x; i < n; i += 32)
        v = fma(x[i], x[i], v);
    for (int d = 16; d; d /= 2)
        v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x == 0)
        *y = v;
}
extern "C" __global__ void argmax(const float *x, int *y, int n) {
    float best = -INFINITY;
    int at = 0;
    for (int i = threadIdx.x; i < n; i += 32)
        if (x[blockIdx.x * n + i] > best)
            best = x[blockIdx.x * n + i], at = i;
    for (int d = 16; d; d /= 2) {
        float v = __shfl_xor_sync(~0u, best, d);
        int k = __shfl_xor_sync(~0u, at, d);
        if (v > best || (v == best && k < at))
            best = v, at = k;
    }
    if (threadIdx.x == 0)
        y[blockIdx.x] = at;
}
extern "C" __global__ void softmax(const float *x, float *y, int n) {
    const float *row = x + blockIdx.x * n;
    float top = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        top = fmaxf(top, row[i]);
    top = block_reduce<true>(top);
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += expf(row[i] - top);
    sum = block_reduce<false>(sum);
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[blockIdx.x * n + i] = expf(row[i] - top) / sum;
}
extern "C" __global__ void layer_norm(const float *x, float *y, int n) {
    const float *row = x + blockIdx.x * n;
    float sum = 0, square = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += row[i];
    float mean = block_reduce<false>(sum) / n;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        square += (row[i] - mean) * (row[i] - mean);
    float scale = rsqrtf(block_reduce<false>(square) / n + 1e-5f);
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[blockIdx.x * n + i] = (row[i] - mean) * scale;
}
extern "C" __global__ void rms_norm_half(const __half *x, __half *y, int n) {
    float square = 0;
    for (int i = threadIdx.x; i < n; i += 32) {
        float v = __half2float(x[blockIdx.x * n + i]);
        square += v * v;
    }
    float scale = rsqrtf(warp_sum(square) / n + 1e-5f);
    for (int i = threadIdx.x; i < n; i += 32)
        y[blockIdx.x * n + i] = __float2half(__half2float(x[blockIdx.x * n + i]) * scale);
}
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_norm(const float *x, float *y) {
    __shared__ float part;
    cg::cluster_group c = cg::this_cluster();
    float sum = block_reduce<false>(fabsf(x[index()])), all = 0;
    if (threadIdx.x == 0)
        part = sum;
    c.sync();
    for (u32 r = 0; r < 4; r++)
        all += *c.map_shared_rank(&part, r);
    c.sync();
    y[index()] = x[index()] / all;
}
// All blocks meet twice in one launch.
extern "C" __global__ void cooperative_mean(const float *x, float *part, u32 *count, float *y) {
    float sum = block_reduce<false>(x[index()]), mean = 0;
    if (threadIdx.x == 0) {
        part[blockIdx.x] = sum;
        __threadfence();
        atomicAdd(count, 1);
        while (*(volatile u32 *)count < gridDim.x)
            ;
        __threadfence();
    }
    __syncthreads();
    for (u32 b = 0; b < gridDim.x; b++)
        mean += __ldcg(part + b);
    y[index()] = x[index()] - mean / (gridDim.x * blockDim.x);
}
extern "C" __global__ void grid_mean(const float *x, float *part, float *y) {
    float sum = block_reduce<false>(x[index()]), mean = 0;
    if (threadIdx.x == 0)
        part[blockIdx.x] = sum;
    cg::this_grid().sync();
    for (u32 b = 0; b < gridDim.x; b++)
        mean += part[b];
    y[index()] = x[index()] - mean / (gridDim.x * blockDim.x);
}

// Scans.
extern "C" __global__ void scan_warp(const u32 *x, u32 *y) {
    u32 v = x[index()], lane = threadIdx.x % 32;
    for (int d = 1; d < 32; d *= 2) {
        u32 o = __shfl_up_sync(~0u, v, d);
        if (lane >= d)
            v += o;
    }
    y[index()] = v;
}
extern "C" __global__ void scan_block(const float *x, float *y) {
    __shared__ float part[8];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    float v = x[index()];
    for (int d = 1; d < 32; d *= 2) {
        float o = __shfl_up_sync(~0u, v, d);
        if (lane >= d)
            v += o;
    }
    if (lane == 31)
        part[warp] = v;
    __syncthreads();
    if (warp == 0 && lane < 8) {
        float p = part[lane];
        for (int d = 1; d < 8; d *= 2) {
            float o = __shfl_up_sync(0xff, p, d);
            if (lane >= d)
                p += o;
        }
        part[lane] = p;
    }
    __syncthreads();
    y[index()] = warp ? v + part[warp - 1] : v;
}
extern "C" __global__ void scan_shared(const u32 *x, u32 *y) { // up and down a tree
    __shared__ u32 s[256];
    int t = threadIdx.x;
    s[t] = x[index()];
    s[t + 128] = x[index() + 128];
    int step = 1;
    for (int d = 128; d; d /= 2, step *= 2) {
        __syncthreads();
        if (t < d)
            s[step * (2 * t + 2) - 1] += s[step * (2 * t + 1) - 1];
    }
    if (t == 0)
        s[255] = 0;
    for (int d = 1; d < 256; d *= 2) {
        step /= 2;
        __syncthreads();
        if (t < d) {
            u32 v = s[step * (2 * t + 1) - 1];
            s[step * (2 * t + 1) - 1] = s[step * (2 * t + 2) - 1];
            s[step * (2 * t + 2) - 1] += v;
        }
    }
    __syncthreads();
    y[t] = s[t];
    y[t + 128] = s[t + 128];
}
extern "C" __global__ void compact(const int *x, int *y, u32 *count, int n) { // keep the odd ones
    int i = threadIdx.x, kept = 0;
    for (int base = 0; base < n; base += 32) {
        int v = x[base + i];
        u32 mask = __ballot_sync(~0u, v & 1);
        if (v & 1)
            y[kept + __popc(mask & ((1u << i) - 1))] = v;
        kept += __popc(mask);
    }
    if (i == 0)
        *count = kept;
}

// Moving data about.
extern "C" __global__ void transpose(const float *x, float *y, int n) {
    __shared__ float tile[32][33];
    int c = blockIdx.x % (n / 32) * 32, r = blockIdx.x / (n / 32) * 32;
    for (int k = threadIdx.x / 32; k < 32; k += blockDim.x / 32)
        tile[k][threadIdx.x % 32] = x[(r + k) * n + c + threadIdx.x % 32];
    __syncthreads();
    for (int k = threadIdx.x / 32; k < 32; k += blockDim.x / 32)
        y[(c + k) * n + r + threadIdx.x % 32] = tile[threadIdx.x % 32][k];
}
extern "C" __global__ void stencil(const float *x, float *y, int n) {
    int c = threadIdx.x, r = blockIdx.x;
    auto v = [&](int i, int k) { return i < 0 || k < 0 || i >= n || k >= n ? 0 : x[i * n + k]; };
    y[r * n + c] = 0.5f * v(r, c) + 0.125f * (v(r - 1, c) + v(r + 1, c) + v(r, c - 1) + v(r, c + 1));
}
extern "C" __global__ void convolve(const float *x, const float *w, float *y, int n) {
    __shared__ float s[128 + 6];
    int t = threadIdx.x, first = blockIdx.x * 128 - 3;
    for (int i = t; i < 134; i += 128)
        s[i] = first + i >= 0 && first + i < n ? x[first + i] : 0;
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 7; k++)
        sum += s[t + k] * w[k];
    y[index()] = sum;
}
extern "C" __global__ void sort_block(const u32 *x, u32 *y) { // bitonic
    __shared__ u32 s[256];
    u32 t = threadIdx.x;
    s[t] = x[index()];
    for (u32 k = 2; k <= 256; k *= 2)
        for (u32 j = k / 2; j; j /= 2) {
            __syncthreads();
            u32 o = t ^ j;
            if (o > t && (s[t] > s[o]) == ((t & k) == 0)) {
                u32 v = s[t];
                s[t] = s[o];
                s[o] = v;
            }
        }
    __syncthreads();
    y[index()] = s[t];
}
extern "C" __global__ void gather_embedding(const float *table, const u32 *which, float *y) {
    for (int i = threadIdx.x; i < 64; i += 32)
        y[blockIdx.x * 64 + i] = table[(which[blockIdx.x] & 15) * 64 + i];
}
extern "C" __global__ void cross_entropy(const float *x, const u32 *label, float *loss, int n) {
    const float *row = x + blockIdx.x * n;
    float top = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < n; i += 32)
        top = fmaxf(top, row[i]);
    top = warp_max(top);
    for (int i = threadIdx.x; i < n; i += 32)
        sum += __expf(row[i] - top);
    sum = warp_sum(sum);
    if (threadIdx.x == 0)
        loss[blockIdx.x] = __logf(sum) + top - row[label[blockIdx.x] % n];
}
