// task: second_softmax.task
// tries: honest: online softmax, float4 where rows are whole and single elements elsewhere, joined by shuffles
// should: accepted
// device: both
//! launch k<<<R, 128>>>(x, y, C)
__device__ void join(float &m, float &s, float n, float t) {
    float o = fmaxf(m, n);
    s = (m == o ? s : s * expf(m - o)) + (n == o ? t : t * expf(n - o));
    m = o;
}
__device__ void put(float &m, float &s, float v) {
    if (v > m) {
        s = s * expf(m - v) + 1;
        m = v;
    } else
        s += v == -INFINITY ? 0 : expf(v - m);
}
extern "C" __global__ void k(const float *x, float *y, int c) {
    __shared__ float wm[4], ws[4];
    x += (int64_t)blockIdx.x * c, y += (int64_t)blockIdx.x * c;
    float m = -INFINITY, s = 0;
    bool vec = c % 4 == 0;
    if (vec)
        for (int j = threadIdx.x; j < c / 4; j += 128) {
            float4 v = ((const float4 *)x)[j];
            put(m, s, v.x), put(m, s, v.y), put(m, s, v.z), put(m, s, v.w);
        }
    else
        for (int j = threadIdx.x; j < c; j += 128)
            put(m, s, x[j]);
    for (int d = 16; d; d /= 2) {
        float n = __shfl_xor_sync(~0u, m, d), t = __shfl_xor_sync(~0u, s, d);
        join(m, s, n, t);
    }
    if (threadIdx.x % 32 == 0)
        wm[threadIdx.x / 32] = m, ws[threadIdx.x / 32] = s;
    __syncthreads();
    m = wm[0], s = ws[0];
    for (int i = 1; i < 4; i++)
        join(m, s, wm[i], ws[i]);
    if (vec)
        for (int j = threadIdx.x; j < c / 4; j += 128) {
            float4 v = ((const float4 *)x)[j];
            ((float4 *)y)[j] = make_float4(expf(v.x - m) / s, expf(v.y - m) / s, expf(v.z - m) / s, expf(v.w - m) / s);
        }
    else
        for (int j = threadIdx.x; j < c; j += 128)
            y[j] = expf(x[j] - m) / s;
}
