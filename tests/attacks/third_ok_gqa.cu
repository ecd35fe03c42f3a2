// task: third_gqa.task
// tries: honest: online softmax, a warp a query
// should: accepted
// device: both
//! require D <= 256
//! launch k<<<[L, B*G*Q], 32>>>(q, k, v, n, y, G, Q, L, D)
extern "C" __global__ void k(const float *q, const float *k, const float *v, const int *n, float *y, int g, int qq, int l, int d) {
    int i = blockIdx.x, b = blockIdx.y / (g * qq), h = blockIdx.y % (g * qq), kh = h / qq;
    const float *qr = q + ((int64_t)blockIdx.y * l + i) * d, *kr = k + (int64_t)(b * g + kh) * l * d, *vr = v + (int64_t)(b * g + kh) * l * d;
    int end = min(i + 1, n[b]);
    float m = -INFINITY, z = 0, acc[8] = {};
    for (int j = 0; j < end; j++) {
        float s = 0;
        for (int e = threadIdx.x; e < d; e += 32)
            s += qr[e] * kr[(int64_t)j * d + e];
        for (int o = 16; o; o /= 2)
            s += __shfl_xor_sync(~0u, s, o);
        s *= rsqrtf(d);
        float f = s > m || s != s ? s : m, base = f == -INFINITY ? 0 : f, c = expf(m - base), p = expf(s - base);
        z = z * c + p, m = f;
        for (int e = 0; e < 8; e++)
            if (threadIdx.x + 32 * e < d)
                acc[e] = acc[e] * c + p * vr[(int64_t)j * d + threadIdx.x + 32 * e];
    }
    for (int e = 0; e < 8; e++)
        if (threadIdx.x + 32 * e < d)
            y[((int64_t)blockIdx.y * l + i) * d + threadIdx.x + 32 * e] = acc[e] / z;
}
