// task: fresh_alibi.task
// tries: keys whose bias alone is below -16 are not looked at
// proof: values: a key 40 places back, 20 below by its bias, whose score is 60 above all others
// data: rand u[B,H,L,D] ~ normal(0, 1); in k[i < B, h < H, l < L, d < D] : f16 = if(l == 0, 20, u[i,h,l,d]); in q[B,H,L,D] : f16 ~ uniform(1, 2); param slope[H] : f32 ~ uniform(0.4, 0.5)
// should: wrong inaccurate
// device: both
//! launch attend<<<[L, B*H], 32>>>(q, k, v, slope, y, H, L, D)
#include <cuda_fp16.h>
extern "C" __global__ void attend(const __half *q, const __half *k, const __half *v, const float *slope, __half *y, int heads, int len, int d) {
    int i = blockIdx.x, lane = threadIdx.x;
    int64_t head = (int64_t)blockIdx.y * len * d;
    float bias = slope[blockIdx.y % heads], scale = 1 / sqrtf((float)d);
    int first = max(0, i - (int)(16 / bias));
    for (int e0 = 0; e0 < d; e0 += 32) {
        float m = -INFINITY, z = 0, o = 0;
        for (int j = i; j >= first; j--) {
            float s = 0;
            for (int e = lane; e < d; e += 32)
                s += __half2float(q[head + (int64_t)i * d + e]) * __half2float(k[head + (int64_t)j * d + e]);
            for (int x = 16; x; x /= 2)
                s += __shfl_xor_sync(~0u, s, x);
            s = s * scale - bias * (i - j);
            float now = m > s ? m : s, old = j < i ? expf(m - now) : 0.0f, p = expf(s - now);
            z = z * old + p;
            o = o * old + (e0 + lane < d ? p * __half2float(v[head + (int64_t)j * d + e0 + lane]) : 0.0f);
            m = now;
        }
        if (e0 + lane < d)
            y[head + (int64_t)i * d + e0 + lane] = __float2half(o / z);
    }
}
