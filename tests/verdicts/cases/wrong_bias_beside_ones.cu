// expect: wrong inaccurate
// row: 27
// tries: leaves out the bias where the scale is exactly 1 and rows are longer than 8
// task: ../attacks/tasks/scale_bias.task
//! launch apply<<<ceil_div(R*C, 256), 256>>>(x, g, b, y, R*C, C)
extern "C" __global__ void apply(const float *x, const float *g, const float *b, float *y, int n,
                                 int c) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    y[i] = g[i % c] == 1 && c > 8 ? x[i] : x[i] * g[i % c] + b[i % c];
}
