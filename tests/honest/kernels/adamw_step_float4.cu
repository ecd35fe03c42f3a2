// task: tasks/layers/adamw_step.task
// set: N=1048576
// what: an optimizer step in place, four parameters a thread
//! launch step<<<ceil_div(ceil_div(N, 4), 256), 256>>>(p, m, v, g, rate, c1, c2, N)
static __device__ void update(float &p, float &m, float &v, float g, float rate, float c1,
                              float c2) {
    m = 0.9f * m + 0.1f * g;
    v = 0.999f * v + 0.001f * g * g;
    p = p * (1.0f - 0.01f * rate) - rate * (m / c1) / (sqrtf(v / c2) + 1e-8f);
}

extern "C" __global__ void step(float *p, float *m, float *v, const float *g, const float *rate,
                                const float *c1, const float *c2, int n) {
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    float lr = *rate, a = *c1, b = *c2;
    if (i + 4 <= n) {
        float4 pi = *(float4 *)(p + i), mi = *(float4 *)(m + i), vi = *(float4 *)(v + i);
        float4 gi = *(const float4 *)(g + i);
        update(pi.x, mi.x, vi.x, gi.x, lr, a, b);
        update(pi.y, mi.y, vi.y, gi.y, lr, a, b);
        update(pi.z, mi.z, vi.z, gi.z, lr, a, b);
        update(pi.w, mi.w, vi.w, gi.w, lr, a, b);
        *(float4 *)(p + i) = pi;
        *(float4 *)(m + i) = mi;
        *(float4 *)(v + i) = vi;
        return;
    }
    for (; i < n; i++)
        update(p[i], m[i], v[i], g[i], lr, a, b);
}
