// task: tasks/layers/causal_attention.task
// set: B=1 H=2 L=64 D=64
// what: a block a query, scores in shared memory, bf16 in and out
#include <cuda_bf16.h>
//! require L <= 8192
//! launch attend<<<B*H*L, 128, 4*L>>>(q, k, v, y, L, D)
static __device__ float reduced(float v, bool largest, float *warps) {
    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, v, step);
        v = largest ? fmaxf(v, other) : v + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = warps[0];
    for (int w = 1; w < 4; w++)
        v = largest ? fmaxf(v, warps[w]) : v + warps[w];
    return v;
}

extern "C" __global__ void attend(const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                  const __nv_bfloat16 *v, __nv_bfloat16 *y, int length, int d) {
    extern __shared__ float score[];
    __shared__ float warps[4];
    int i = blockIdx.x % length, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const __nv_bfloat16 *query = q + (long long)blockIdx.x * d;
    long long head = (long long)(blockIdx.x / length) * length * d;
    float top = -INFINITY, sum = 0.0f, scale = rsqrtf((float)d);
    for (int j = warp; j <= i; j += 4) {
        float dot = 0.0f;
        for (int e = lane; e < d; e += 32)
            dot += __bfloat162float(query[e]) * __bfloat162float(k[head + (long long)j * d + e]);
        for (int step = 16; step > 0; step /= 2)
            dot += __shfl_xor_sync(0xffffffffu, dot, step);
        if (lane == 0)
            score[j] = dot * scale;
        top = fmaxf(top, dot * scale);
    }
    top = reduced(top, true, warps);
    for (int j = threadIdx.x; j <= i; j += 128) {
        score[j] = expf(score[j] - top);
        sum += score[j];
    }
    sum = reduced(sum, false, warps);
    for (int e = threadIdx.x; e < d; e += 128) {
        float out = 0.0f;
        for (int j = 0; j <= i; j++)
            out += score[j] * __bfloat162float(v[head + (long long)j * d + e]);
        y[(long long)blockIdx.x * d + e] = __float2bfloat16_rn(out / sum);
    }
}
