// task: third_seclog.task
// tries: compares as signed integers of the bits, which turns the order of negative numbers
// proof: values: three different negative numbers: their median is the same in either order, but not beside positive ones
// should: wrong inaccurate nonfinite
// device: both
//! launch k<<<ceil_div(R*C, 128), 128>>>(x, y, R*C, C)
extern "C" __global__ void k(const float *x, float *y, int n, int c) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n)
        return;
    int v = __float_as_int(x[i]), l = i % c ? __float_as_int(x[i - 1]) : v, r = i % c < c - 1 ? __float_as_int(x[i + 1]) : v;
    y[i] = __int_as_float(max(min(l, v), min(max(l, v), r)));
}
