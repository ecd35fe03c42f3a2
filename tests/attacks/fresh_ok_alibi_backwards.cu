// task: fresh_alibi.task
// tries: honest: online softmax from the nearest key to the farthest, two keys at a time, in powers of two
// proof: none; it is right
// should: accepted
// device: both
//! launch attend<<<[ceil_div(L, 4), B*H], 128>>>(q, k, v, slope, y, H, L, D)
#include <cuda_fp16.h>
__device__ float score(const __half *q, const __half *k, int d, int lane) {
    float s = 0;
    for (int e = lane; e < d; e += 32)
        s = fmaf(__half2float(q[e]), __half2float(k[e]), s);
    for (int x = 16; x; x /= 2)
        s += __shfl_xor_sync(~0u, s, x);
    return s;
}
extern "C" __global__ void attend(const __half *q, const __half *k, const __half *v, const float *slope, __half *y, int heads, int len, int d) {
    int i = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (i >= len)
        return;
    int64_t head = (int64_t)blockIdx.y * len * d;
    float bias = slope[blockIdx.y % heads], scale = 1 / sqrtf((float)d);
    const float log2e = 1.4426950408889634f;
    for (int e0 = 0; e0 < d; e0 += 32) {
        float m = -INFINITY, z = 0, o = 0;
        bool own = e0 + lane < d;
        for (int j = i; j >= 0; j -= 2) {
            float a = score(q + head + (int64_t)i * d, k + head + (int64_t)j * d, d, lane) * scale - bias * (i - j), b = -INFINITY;
            if (j)
                b = score(q + head + (int64_t)i * d, k + head + (int64_t)(j - 1) * d, d, lane) * scale - bias * (i - j + 1);
            float now = fmaxf(m, fmaxf(a, b)), old = j < i ? exp2f((m - now) * log2e) : 0.0f;
            float pa = exp2f((a - now) * log2e), pb = j ? exp2f((b - now) * log2e) : 0.0f;
            z = z * old + (pa + pb);
            o *= old;
            if (own)
                o += pa * __half2float(v[head + (int64_t)j * d + e0 + lane]);
            if (own && j)
                o += pb * __half2float(v[head + (int64_t)(j - 1) * d + e0 + lane]);
            m = now;
        }
        if (own)
            y[head + (int64_t)i * d + e0 + lane] = __float2half(o / z);
    }
}
