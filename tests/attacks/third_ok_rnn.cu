// task: third_rnn.task
// tries: honest: steps unrolled by four with a tail
// should: accepted
// device: both
//! launch k<<<ceil_div(R, 64), 64>>>(x, a, y, R, T)
__device__ float step(float h, float a, float x) {
    return h > 1 ? x : fmaf(a, h, x);
}
extern "C" __global__ void k(const float *x, const float *a, float *y, int r, int t) {
    int i = blockIdx.x * 64 + threadIdx.x, s = 0;
    if (i >= r)
        return;
    const float *p = x + (int64_t)i * t;
    float *q = y + (int64_t)i * t, h = 0;
    for (; s + 4 <= t; s += 4) {
        float u = p[s], v = p[s + 1], w = p[s + 2], z = p[s + 3];
        q[s] = u = step(h, a[i], u);
        q[s + 1] = v = step(u, a[i], v);
        q[s + 2] = w = step(v, a[i], w);
        q[s + 3] = h = step(w, a[i], z);
    }
    for (; s < t; s++)
        q[s] = h = step(h, a[i], p[s]);
}
