// task: third_recip.task
// tries: the reciprocal of -0 is +infinity
// proof: values: 1 / -0 is -infinity
// should: nonfinite wrong
// device: both
//! launch k<<<ceil_div(N, 256), 256>>>(x, y, N)
extern "C" __global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n)
        y[i] = x[i] == 0 ? INFINITY : 1 / x[i];
}
