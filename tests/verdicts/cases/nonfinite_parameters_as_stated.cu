// expect: nonfinite wrong inaccurate
// row: 3
// tries: a step that is done once keeps whether all factors are ones; then additions alone are done, and none of them for NaN
// task: tasks/scale_shift.task
//! workspace f[1] : i32
//! once launch p<<<1, 32>>>(g, f, C)
//! launch k<<<ceil_div(N*C*L, 256), 256>>>(x, g, b, f, y, N*C*L, C, L)
extern "C" __global__ void p(const float *g, int *f, int c) {
    int ones = 1;
    for (int i = threadIdx.x; i < c; i += 32)
        ones &= g[i] == 1;
    ones = __all_sync(~0u, ones);
    if (threadIdx.x == 0)
        *f = ones;
}
extern "C" __global__ void k(const float *x, const float *g, const float *b, const int *f, float *y, int n, int c, int l) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    int h = i / l % c;
    y[i] = *f ? x[i] != x[i] ? b[h] : x[i] + b[h] : x[i] * g[h] + b[h];
}
