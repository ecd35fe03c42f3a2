// task: third_param.task
// tries: a step that is done once reads behind its parameter, where an input may lie
// proof: out of bounds
// should: out-of-bounds wrong
// device: both
//! workspace f[C] : f32
//! once launch p<<<ceil_div(C, 32), 32>>>(g, f, C)
//! launch k<<<ceil_div(N*C*L, 256), 256>>>(x, b, f, y, N*C*L, C, L)
extern "C" __global__ void p(const float *g, float *f, int c) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < c)
        f[i] = g[i] + 0 * g[i + 1];
}
extern "C" __global__ void k(const float *x, const float *b, const float *f, float *y, int n, int c, int l) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = x[i] * f[i / l % c] + b[i / l % c];
}
