// task: fresh_alibi.task
// tries: the running maximum begins at 0: scores below -104 have no weight left
// proof: values: a token whose scores are all below -104 is 0/0
// data: rand u[B,H,L,D] ~ uniform(3, 5); rand w[B,H,L,D] ~ uniform(-9, -7); in q[B,H,L,D] : f16 = u[b,h,l,d]; in k[B,H,L,D] : f16 = w[b,h,l,d]
// should: wrong inaccurate nonfinite
// device: both
//! launch attend<<<[L, B*H], 32>>>(q, k, v, slope, y, H, L, D)
#include <cuda_fp16.h>
extern "C" __global__ void attend(const __half *q, const __half *k, const __half *v, const float *slope, __half *y, int heads, int len, int d) {
    int i = blockIdx.x, lane = threadIdx.x;
    int64_t head = (int64_t)blockIdx.y * len * d;
    float bias = slope[blockIdx.y % heads], scale = 1 / sqrtf((float)d);
    for (int e0 = 0; e0 < d; e0 += 32) {
        float m = 0, z = 0, o = 0;
        for (int j = 0; j <= i; j++) {
            float s = 0;
            for (int e = lane; e < d; e += 32)
                s += __half2float(q[head + (int64_t)i * d + e]) * __half2float(k[head + (int64_t)j * d + e]);
            for (int x = 16; x; x /= 2)
                s += __shfl_xor_sync(~0u, s, x);
            s = s * scale - bias * (i - j);
            float now = m > s ? m : s, old = expf(m - now), p = expf(s - now);
            z = z * old + p;
            o = o * old + (e0 + lane < d ? p * __half2float(v[head + (int64_t)j * d + e0 + lane]) : 0.0f);
            m = now;
        }
        if (e0 + lane < d)
            y[head + (int64_t)i * d + e0 + lane] = __float2half(o / z);
    }
}
