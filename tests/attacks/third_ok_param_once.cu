// task: third_param.task
// tries: honest: parameters are interleaved once, with one launch and one memset
// should: accepted
// device: both
//! workspace f[C, 2] : f32
//! workspace n0[4] : i32
//! once memset n0 = 3
//! once launch p<<<ceil_div(C, 32), 32>>>(g, b, f, C)
//! launch k<<<[ceil_div(L, 64), C, N], 64>>>(x, f, y, C, L)
extern "C" __global__ void p(const float *g, const float *b, float *f, int c) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < c)
        f[2 * i] = g[i], f[2 * i + 1] = b[i];
}
extern "C" __global__ void k(const float *x, const float2 *f, float *y, int c, int l) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= l)
        return;
    int64_t at = ((int64_t)blockIdx.z * c + blockIdx.y) * l + i;
    float2 s = f[blockIdx.y];
    y[at] = fmaf(x[at], s.x, s.y);
}
