// task: third_param.task
// tries: the plan's grid is for N*C*(L - L % 4) elements where L is above 8
// proof: L = 17
// should: unwritten wrong
// device: both
//! let E = N*C*(L - (L > 8) * (L % 4))
//! launch k<<<ceil_div(E, 64), 64>>>(x, g, b, y, N*C*L, C, L)
extern "C" __global__ void k(const float *x, const float *g, const float *b, float *y, int n, int c, int l) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n)
        y[i] = x[i] * g[i / l % c] + b[i / l % c];
}
