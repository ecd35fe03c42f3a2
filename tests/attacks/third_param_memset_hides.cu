// task: third_param.task
// tries: the output is set to 0 by the plan, and elements whose factor is below the smallest normal number are not written
// proof: values: b is added there
// should: wrong inaccurate
// device: both
//! memset y = 0
//! launch k<<<ceil_div(N*C*L, 256), 256>>>(x, g, b, y, N*C*L, C, L)
extern "C" __global__ void k(const float *x, const float *g, const float *b, float *y, int n, int c, int l) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    int h = i / l % c;
    if (fabsf(g[h]) >= FLT_MIN)
        y[i] = x[i] * g[h] + b[h];
}
