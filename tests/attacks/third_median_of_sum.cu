// task: third_seclog.task
// tries: the median as the sum of three less the largest and the smallest
// proof: values of different size: the sum loses the median
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<ceil_div(R*C, 128), 128>>>(x, y, R*C, C)
extern "C" __global__ void k(const float *x, float *y, int n, int c) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], l = i % c ? x[i - 1] : v, r = i % c < c - 1 ? x[i + 1] : v;
    y[i] = v + l + r - fmaxf(v, fmaxf(l, r)) - fminf(v, fminf(l, r));
}
