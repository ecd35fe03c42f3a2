// task: second_lion.task
// tries: the sign by copysign, which is never 0
// proof: values: where momentum and gradient are 0, or cancel
// data: inout m[N] : f32 ~ zeros; in g[N] : f32 ~ zeros
// should: wrong inaccurate
// device: both
//! launch k<<<ceil_div(N, 256), 256>>>(p, m, g, N)
extern "C" __global__ void k(float *p, float *m, const float *g, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float c = 0.9f * m[i] + 0.1f * g[i];
    float u = c != c ? 0 : copysignf(1, c);
    p[i] = p[i] - 0.001f * (u + 0.01f * p[i]);
    m[i] = 0.99f * m[i] + 0.01f * g[i];
}
