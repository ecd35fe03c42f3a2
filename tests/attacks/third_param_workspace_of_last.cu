// task: third_param.task
// tries: a workspace of factors is made for the first 32 channels, and the others are expected from the run before
// proof: workspaces hold nothing
// should: uninitialised wrong nonfinite inaccurate
// device: both
//! workspace f[C] : f32
//! launch p<<<1, 32>>>(g, f, C)
//! launch k<<<ceil_div(N*C*L, 256), 256>>>(x, b, f, y, N*C*L, C, L)
extern "C" __global__ void p(const float *g, float *f, int c) {
    if ((int)threadIdx.x < c)
        f[threadIdx.x] = g[threadIdx.x];
}
extern "C" __global__ void k(const float *x, const float *b, const float *f, float *y, int n, int c, int l) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = x[i] * f[i / l % c] + b[i / l % c];
}
