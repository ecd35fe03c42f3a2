// task: second_decode.task
// tries: honest: eight blocks share a head's keys, those without any leave an empty part, a second launch joins them
// should: accepted
// device: both
//! workspace acc[H, 8, D] : f32
//! workspace ms[H, 8] : f32
//! workspace zs[H, 8] : f32
//! launch split<<<[8, H], 128, D*4>>>(q, k, v, acc, ms, zs, L, D)
//! launch join<<<H, 64>>>(acc, ms, zs, y, D)
//! require D <= 8192
extern "C" __global__ void split(const float *q, const float *k, const float *v, float *acc, float *ms, float *zs, int l, int d) {
    extern __shared__ float qs[];
    __shared__ float s[4];
    int h = blockIdx.y, t = threadIdx.x, per = (l + 7) / 8, from = min(l, (int)blockIdx.x * per), to = min(l, from + per);
    int64_t at = (int64_t)h * 8 + blockIdx.x;
    float m = -INFINITY, z = 0;
    for (int e = t; e < d; e += 128) {
        qs[e] = q[(int64_t)h * d + e];
        acc[at * d + e] = 0;
    }
    __syncthreads();
    for (int j = from; j < to; j += 4) {
        int w = t / 32;
        float x = 0;
        if (j + w < to)
            for (int e = t % 32; e < d; e += 32)
                x = fmaf(qs[e], k[((int64_t)h * l + j + w) * d + e], x);
        for (int o = 16; o; o /= 2)
            x += __shfl_xor_sync(~0u, x, o);
        if (t % 32 == 0)
            s[w] = j + w < to ? x / sqrtf(d) : -INFINITY;
        __syncthreads();
        float n = m, p[4], r;
        for (int i = 0; i < 4; i++)
            n = fmaxf(n, s[i]);
        r = m == n ? 1 : expf(m - n);
        z *= r;
        for (int i = 0; i < 4; i++)
            z += p[i] = j + i < to ? expf(s[i] - n) : 0;
        for (int e = t; e < d; e += 128) {
            float o = acc[at * d + e] * r;
            for (int i = 0; i < 4 && j + i < to; i++)
                o = fmaf(p[i], v[((int64_t)h * l + j + i) * d + e], o);
            acc[at * d + e] = o;
        }
        m = n;
        __syncthreads();
    }
    if (t == 0)
        ms[at] = m, zs[at] = z;
}
extern "C" __global__ void join(const float *acc, const float *ms, const float *zs, float *y, int d) {
    int64_t at = (int64_t)blockIdx.x * 8;
    float m = -INFINITY, z = 0, f[8];
    for (int i = 0; i < 8; i++)
        m = fmaxf(m, ms[at + i]);
    for (int i = 0; i < 8; i++) {
        f[i] = ms[at + i] == m ? 1 : expf(ms[at + i] - m);
        z += zs[at + i] * f[i];
    }
    for (int e = threadIdx.x; e < d; e += 64) {
        float s = 0;
        for (int i = 0; i < 8; i++)
            s += acc[(at + i) * d + e] * f[i];
        y[(int64_t)blockIdx.x * d + e] = s / z;
    }
}
