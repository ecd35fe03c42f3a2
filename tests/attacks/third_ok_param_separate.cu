// task: third_param.task
// tries: honest: product and sum rounded one after the other
// should: accepted
// device: both
//! launch k<<<ceil_div(N*C*L, 256), 256>>>(x, g, b, y, N*C*L, C, L)
extern "C" __global__ void k(const float *x, const float *g, const float *b, float *y, int n, int c, int l) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = __fadd_rn(__fmul_rn(x[i], g[i / l % c]), b[i / l % c]);
}
