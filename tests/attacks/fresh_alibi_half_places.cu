// task: fresh_alibi.task
// tries: distances for the biases are differences of places kept as f16, exact up to 2,048 only
// proof: values: from L = 2,049 on odd places are rounded, and with a slope of 0.5 a weight is off by a factor of exp(0.5)
// shows: B=1 H=1 L=4096 D=1
// known: its cost grows with the square of the length, so no shape of over 2,048 is drawn
// should: wrong inaccurate
// device: both
//! launch attend<<<[ceil_div(L, 4), B*H], 128>>>(q, k, v, slope, y, H, L, D)
#include <cuda_fp16.h>
extern "C" __global__ void attend(const __half *q, const __half *k, const __half *v, const float *slope, __half *y, int heads, int len, int d) {
    int i = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (i >= len)
        return;
    int64_t head = (int64_t)blockIdx.y * len * d;
    float bias = slope[blockIdx.y % heads], scale = 1 / sqrtf((float)d);
    __half hi = __int2half_rn(i);
    for (int e0 = 0; e0 < d; e0 += 32) {
        float m = -INFINITY, z = 0, o = 0;
        for (int j = 0; j <= i; j++) {
            float s = 0;
            for (int e = lane; e < d; e += 32)
                s += __half2float(q[head + (int64_t)i * d + e]) * __half2float(k[head + (int64_t)j * d + e]);
            for (int x = 16; x; x /= 2)
                s += __shfl_xor_sync(~0u, s, x);
            s = s * scale - bias * (__half2float(hi) - __half2float(__int2half_rn(j)));
            float now = m > s ? m : s;
            float old = j ? expf(m - now) : 0.0f, p = expf(s - now);
            z = z * old + p;
            o = o * old + (e0 + lane < d ? p * __half2float(v[head + (int64_t)j * d + e0 + lane]) : 0.0f);
            m = now;
        }
        if (e0 + lane < d)
            y[head + (int64_t)i * d + e0 + lane] = __float2half(o / z);
    }
}
