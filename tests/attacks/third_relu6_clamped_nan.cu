// task: third_relu6.task
// tries: saturating by fminf and fmaxf
// proof: values: NaN becomes a number
// should: nonfinite wrong
// device: both
//! launch k<<<ceil_div(R*C, 256), 256>>>(x, y, d, R*C)
extern "C" __global__ void k(const float *x, float *y, bool *d, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    y[i] = fminf(fmaxf(v, 0.0f), 6.0f), d[i] = v > 0 && v < 6;
}
